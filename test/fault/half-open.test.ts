import { afterAll, beforeAll, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'

// Fault matrix, row 22, with the real durations: it only waits, beside the other tests.

const noticedMs = 45_000
/** The time that a busy machine needs to tell of it; the wire must be given up before. */
const tellingMs = 2_000

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start({ withProxy: true })
})
afterAll(() => system?.stop())

test('row 22: both ends notice within 45 s that nothing comes over the wire any more', async () => {
  const { device, server } = system
  // The worst moment: right after something was heard.
  system.proxy.blackHole()
  const cutAt = performance.now()
  const metrics = async () => (await fetch(`${server.url}/metrics`)).text()
  const since = (what: string, isSo: () => boolean | Promise<boolean>) =>
    waitFor(isSo, what, { ms: noticedMs + tellingMs, everyMs: 100, about: () => device.log }).then(
      () => performance.now() - cutAt,
    )
  const ends = await Promise.all([
    since('the daemon gives the link up', async () => (await device.status()).link.state !== 'connected'),
    since('the server gives the link up', async () =>
      /^svc_link_closes_total\{.*reason="silent".*\} 1$/m.test(await metrics()),
    ),
  ])
  for (const ms of ends) expect(ms).toBeLessThan(noticedMs)
  expect((await device.status()).link.lastError).toBe('nothing was heard from the server')
})
