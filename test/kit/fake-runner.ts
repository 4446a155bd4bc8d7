import type { SandboxIdentity } from '../../shared/device/sandbox.ts'
import type { FakeDevice } from './fake-device.ts'

/** Runners in sandboxes that a test plays. */

/** One that is to tell what a run left has nothing of it, and leaves. */
export async function leftWhereLost(device: FakeDevice, { lost }: Pick<SandboxIdentity, 'lost'>): Promise<FakeDevice> {
  if (lost === undefined) return device
  await device.disconnect()
  throw new Error('nothing is left on the volume')
}

/** Takes its run, says where it is, ends it and leaves. Returns its exit status. */
export async function workOnce(device: FakeDevice, where: string): Promise<number> {
  const run = await device.take()
  await run.events({ kind: 'text', data: { text: `in ${where}` } })
  await run.end()
  await device.disconnect()
  return 0
}
