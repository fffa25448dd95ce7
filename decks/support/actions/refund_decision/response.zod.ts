import { z } from "npm:zod";

export default z.object({
  decision: z.enum(["refund", "replace", "refuse", "ask_human"]),
  amountCents: z
    .number()
    .int()
    .min(0)
    .describe("What is paid back, in euro cents; 0 unless it is a refund."),
  rule: z.string().describe("The rule that decided, or none."),
  explanation: z.string().describe("One or two sentences for the customer."),
});
