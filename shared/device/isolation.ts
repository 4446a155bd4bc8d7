import { z } from 'zod'

/** The choice of a device's owner: `svc` hides svc's folders and all other processes from each run. */
export const isolationChoices = ['svc', 'off'] as const
export type IsolationChoice = (typeof isolationChoices)[number]

/** The result of the choice: everything is hidden, a part of it, or nothing. */
export const isolationLevels = ['full', 'partial', 'off'] as const
export type IsolationLevel = (typeof isolationLevels)[number]

/** The daemon's report of both. */
export const isolationState = z.object({
  /** The choice of the device's owner; null: nobody chose, and no way to hide folders and processes works here. */
  choice: z.enum(isolationChoices).nullable(),
  level: z.enum(isolationLevels),
  /** The program that makes the wall. */
  tool: z.string().max(64).nullable(),
  /** The sentence that says why the level is not `full`. */
  message: z.string().max(4000).nullable(),
})
export type IsolationState = z.infer<typeof isolationState>
