import { z } from 'zod'

/**
 * The wall around a run: a user, mount and pid namespace (Linux) or a sandbox profile (macOS) in which svc's own folders and
 * all processes but the run's are not there. The daemon says how it is made; the run's host makes it.
 */
export const wallTools = ['bwrap', 'unshare', 'sandbox-exec'] as const
export type WallTool = (typeof wallTools)[number]

/** What processes of svc outside of a wall execute, load or read settings from (isolation/executed.ts): read-only inside. */
const executedPaths = z.object({
  /** Files and folders. */
  always: z.array(z.string()),
  /** The checkout that svc runs from. A run whose folder lies in it may write to its sources. */
  checkout: z.string().nullable(),
})
export type ExecutedPaths = z.infer<typeof executedPaths>

export const wallSpec = z.object({
  tool: z.enum(wallTools),
  /** Absolute paths of the system's programs that make it. */
  programs: z.record(z.string(), z.string()),
  /** The device's state folder: hidden, but for what a run needs of it. */
  stateDir: z.string(),
  /** Other folders of svc on this machine. */
  hidden: z.array(z.string()),
  /** Marks of the folders above as they were when they were first hidden, by path (marks.ts). */
  marks: z.record(z.string(), z.string()).default({}),
  /** Folders of this user's terminal multiplexers where they are not in their usual places; they need not exist. */
  doors: z.array(z.string()).default([]),
  executed: executedPaths.default({ always: [], checkout: null }),
})
export type WallSpec = z.infer<typeof wallSpec>

/** The machine does not let the wall be made, or it was broken; its text is a sentence for the owner of the device. */
export class WallError extends Error {}

/** A wall stands, and an act that it must refuse was not refused: nothing is started behind it. */
export class WallOpenError extends Error {}
