import { z } from "npm:zod";

export default z.object({
  wish: z
    .string()
    .optional()
    .describe("What Robin wants and should not get."),
  attempts: z
    .number()
    .int()
    .min(1)
    .max(8)
    .default(3)
    .describe("How often Robin asks before giving up."),
});
