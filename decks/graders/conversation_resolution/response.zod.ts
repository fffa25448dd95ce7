import { z } from "npm:zod";

// The built-in grader_output and one field more. What a grader adds must be optional,
// and is kept only if it is declared here.
export default z.object({
  score: z.number().int().min(-3).max(3),
  reason: z.string(),
  evidence: z.array(z.string()).optional(),
  openMatters: z
    .array(z.string())
    .optional()
    .describe("What the user came for and left without, a few words each."),
});
