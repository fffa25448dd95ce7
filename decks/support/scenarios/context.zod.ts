import { z } from "npm:zod";

// Everything has a default: a scenario is usually started without a context.
export default z.object({
  patience: z
    .number()
    .int()
    .min(1)
    .max(10)
    .default(5)
    .describe("How many messages the customer writes before giving up."),
});
