import type { SandboxIdentity } from '../../shared/device/sandbox.ts'
import type { FakeDevice, FakeRun } from './fake-device.ts'

// Runners in sandboxes that a test plays.

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

/**
 * A run whose sandbox dies, and after it as many as `dying` of those that are to tell what it left; the next one tells it.
 * `enter` opens a link out of the sandbox with this hello.
 */
export function loseOnce<Place>(
  { dying }: { dying: number },
  { identityOf, enter }: { identityOf: IdentityOf<Place>; enter: EnterSandbox<Place> },
): { play: (place: Place) => Promise<number>; salvages: () => number } {
  let run: FakeRun | null = null
  let salvages = 0
  const play = async (place: Place): Promise<number> => {
    const { lost } = await identityOf(place)
    if (lost === undefined) {
      const device = await enter(place)
      run = await device.take()
      await run.events({ kind: 'text', data: { text: 'here' } })
      await device.disconnect()
      return 137
    }
    const { runId, fence } = run!
    const hello = { runs: [{ runId, fence, state: 'ended' as const, lastSeq: 1 }] }
    // Some die before they say hello, and some after it.
    if (++salvages > dying || salvages % 2 === 0) {
      const device = await enter(place, hello)
      if (salvages > dying) {
        device.send(run!.ending('sandbox_lost', { message: lost }))
        await device.next('run.closed')
      }
      await device.disconnect()
    }
    return salvages > dying ? 0 : 137
  }
  return { play, salvages: () => salvages }
}

/** Who a sandbox is; one that is made ahead is told later. */
export type IdentityOf<Place> = (place: Place) => SandboxIdentity | Promise<SandboxIdentity>

export type EnterSandbox<Place> = (place: Place, hello?: Parameters<typeof FakeDevice.open>[2]) => Promise<FakeDevice>
