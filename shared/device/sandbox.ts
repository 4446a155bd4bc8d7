import { z } from 'zod'
import { deviceIdentity } from './device-identity.ts'

/** The variable by which the processes of a runner know that they are in a sandbox, and in which; not set on devices. */
export const sandboxVariable = 'SVC_SANDBOX_FACTS'

/** The port on 127.0.0.1 of a sandbox behind which its broker is. */
export const brokerPort = 4400

export const sandboxFacts = z.object({
  /** The name of the size, for people. */
  size: z.string().max(20),
  /** The bytes that its volume may hold; absent: nobody counts them. */
  diskBytes: z.number().int().positive().optional(),
  /** The folder of its broker, as it is called on the machine of the engine. Nothing in the sandbox can open it. */
  hostFolder: z.string().max(4_096).optional(),
  /** `policy`: it has a network, in which a policy lets it reach its broker alone. */
  network: z.enum(['none', 'policy']).default('none'),
})
export type SandboxFacts = z.infer<typeof sandboxFacts>

/** Reads the facts of the sandbox; null: this is no sandbox. */
export function sandboxFactsIn(env: Readonly<Record<string, string | undefined>>): SandboxFacts | null {
  const facts = env[sandboxVariable]
  return facts === undefined ? null : sandboxFacts.parse(JSON.parse(facts))
}

/** The text that stands for a token where none is needed. */
export const trialMark = 'trial'

/** Exit statuses of a runner that has nothing to tell, and would have nothing to tell if it was started again. */
export const runnerStatus = {
  /** The sandbox was given no run. */
  noRun: 75,
  /** The server did not take the sandbox. */
  refused: 76,
  /** The files that the run left cannot be read. */
  spoilt: 77,
} as const

/** The line with which a connection to a broker at a port begins. */
export const brokerHello = (sandboxId: string, key: string): string => `svc-broker ${sandboxId} ${key}\n`

/** The facts of a sandbox that was made ahead of its run: no run, no token, nothing that a broker would take. */
export const waitingSandbox = z.object({
  publicId: deviceIdentity.shape.publicId,
  deviceId: deviceIdentity.shape.deviceId,
  displayName: deviceIdentity.shape.displayName,
  ...sandboxFacts.shape,
})
export type WaitingSandbox = z.infer<typeof waitingSandbox>

/** The identity of a sandbox to the link. Its token is good for one link: the hello answers the one that counts then. */
export const sandboxIdentity = z.object({
  ...waitingSandbox.shape,
  token: z.string().min(1).max(200),
  /** The sandbox goes on with the volume of one before: what the runner of that one left there is of no use to it. */
  resumes: z.boolean().optional(),
  /** The broker on another machine; left out: it is at the socket beside this file. */
  broker: z
    .object({
      /** `sbx_...`, as whom it asks. */
      sandbox: z.string().max(50),
      host: z.string().max(100),
      port: z.number().int().min(1).max(65_535),
      /** Shown at the beginning of each connection. */
      key: z.string().regex(/^[0-9A-Za-z]{1,100}$/),
    })
    .optional(),
  /** The sandbox takes no run: it tries its walls, tells what it saw and ends. */
  isTrial: z.boolean().optional(),
  /** The end of the sandbox before, whose volume this one has: the runner tells what it left, and takes no run. */
  lost: z.string().max(4_000).optional(),
})
export type SandboxIdentity = z.infer<typeof sandboxIdentity>
