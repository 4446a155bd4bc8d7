import { z } from 'zod'

/** `<state>/identity.json`: how its server knows this machine. The token is in a file of its own. */
export const deviceIdentity = z.object({
  publicId: z.string().max(64),
  deviceId: z.string().max(64),
  displayName: z.string().max(255),
  server: z.string().max(2000),
})
export type DeviceIdentity = z.infer<typeof deviceIdentity>
