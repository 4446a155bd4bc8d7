import { z } from 'zod'

/** The choices of a device's owner: `svc` hides svc's folders and all other processes from each run. */
export const isolationChoices = ['svc', 'off'] as const
export type IsolationChoice = (typeof isolationChoices)[number]

/** The outcome: all is hidden, a part of it, or nothing. */
export const isolationLevels = ['full', 'partial', 'off'] as const
export type IsolationLevel = (typeof isolationLevels)[number]

/** As the daemon tells it. */
export const isolationState = z.object({
  /** null: nobody chose, and no way works here. */
  choice: z.enum(isolationChoices).nullable(),
  level: z.enum(isolationLevels),
  /** The program that makes the wall. */
  tool: z.string().max(64).nullable(),
  /** Why it is not `full`. */
  message: z.string().max(4000).nullable(),
})
export type IsolationState = z.infer<typeof isolationState>
