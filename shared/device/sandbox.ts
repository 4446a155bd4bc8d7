import { z } from 'zod'
import { deviceIdentity } from './control.ts'

/** Where a sandbox has what it needs; the control plane puts it there, the runner in it reads it. */
export const sandboxPlaces = {
  /** The volume: the home of the run, and the state of the runner. */
  work: '/work',
  /** Read-only, of this sandbox alone. */
  broker: '/run/svc',
  identity: 'identity.json',
  socket: 'broker.sock',
} as const

/** Names the size of the sandbox to what runs in it; not set on devices. */
export const sandboxSizeVariable = 'SVC_SANDBOX_SIZE'

/** The port on 127.0.0.1 of a sandbox behind which its broker is. */
export const brokerPort = 4400

/** Who a sandbox is to the link. Its token is good for one link: the hello answers the one that counts then. */
export const sandboxIdentity = z.object({
  publicId: deviceIdentity.shape.publicId,
  deviceId: deviceIdentity.shape.deviceId,
  displayName: deviceIdentity.shape.displayName,
  token: z.string().min(1).max(200),
  /** Its name, for people. */
  size: z.string().max(20),
  /** What became of the sandbox before, whose volume this one has: the runner tells what it left, and takes no run. */
  lost: z.string().max(4_000).optional(),
})
export type SandboxIdentity = z.infer<typeof sandboxIdentity>
