import { z } from "npm:zod";

export default z.object({
  problem: z.enum(["damaged", "changed_mind"]),
  priceCents: z.number().int().min(0),
  deliveredDaysAgo: z.number().int().min(0),
});
