import { z } from "npm:zod";

const item = z.object({
  title: z.string(),
  priceCents: z.number().int().min(0),
});

// What order_lookup returns as `order`.
const order = z.object({
  number: z.string(),
  status: z.enum(["processing", "sent", "delivered"]),
  items: z.array(item),
  sentDaysAgo: z.number().int().min(0).optional(),
  deliveredDaysAgo: z.number().int().min(0).optional(),
});

export default z.object({
  order: order.describe("The order, exactly as order_lookup returned it."),
  items: z
    .array(z.string())
    .min(1)
    .describe("The titles of the items it is about."),
  problem: z.enum([
    "not_sent",
    "not_delivered",
    "damaged",
    "wrong_item",
    "changed_mind",
    "other",
  ]),
  wish: z
    .enum(["refund", "replacement", "cancellation"])
    .describe("What the customer would like."),
  details: z.string().describe("What the customer said, in a sentence or two."),
});
