import { z } from "npm:zod";

export default z.object({
  decision: z.enum(["refund", "refuse"]),
  amountCents: z.number().int().min(0),
});
