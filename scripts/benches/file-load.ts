import { Agent } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { delay } from '../../test/kit/programs.ts'
import type { Context } from './context.ts'
import { fileBytes, fileText, upload, uploadBody } from './file-calls.ts'
import { atMost, compare, type Result } from './measure.ts'
import { lagResolutionMs, serverProbe } from './server-probe.ts'
import { startServer } from './stack.ts'

// What eight uploads of 50 MB at once cost a server: memory, and the turns of its event loop.

const atOnce = 8
const allowedMiB = 128
const mebibyte = 1024 * 1024

export async function loadOfUploads(
  context: Context,
  { name, env }: { name: string; env: Readonly<Record<string, string>> },
): Promise<Result[]> {
  const probe = serverProbe(context, `files-${name}`)
  const server = await startServer(context, { name: `files-${name}`, nodeFlags: probe.nodeFlags, env })
  const agent = new Agent({ keepAlive: true })
  const body = uploadBody('load.bin')
  const uploadAll = async () => {
    const sending = { agent, url: `${server.url}/api/v1/files`, token: server.token, body }
    await Promise.all(Array.from({ length: atOnce }, () => upload(sending)))
  }
  try {
    const { pid } = server.program
    // Code is loaded and compiled by the first ones.
    await uploadAll()
    const seen: { addedMiB: number; busy: number; own: number; idle: number; perSecond: number }[] = []
    for (let round = 0; round < context.rounds; round++) {
      const before = await probe.residentBytes()
      await probe.lagP99()
      await probe.ownLagP99()
      writeFileSync(`/proc/${pid}/clear_refs`, '5')
      const startedAt = performance.now()
      await uploadAll()
      const tookMs = performance.now() - startedAt
      const [busy, own] = [await probe.lagP99(), await probe.ownLagP99()]
      const addedMiB = (peakBytes(pid) - before) / mebibyte
      await delay(1_000)
      await probe.lagP99()
      await delay(tookMs)
      const perSecond = ((atOnce * fileBytes) / mebibyte / tookMs) * 1_000
      seen.push({ addedMiB, busy, own, idle: await probe.lagP99(), perSecond })
    }
    const of = (key: keyof (typeof seen)[number]) => (round: number) => Promise.resolve([seen[round]![key]])
    const { rounds } = context
    return [
      await compare({
        name: `memory that ${atOnce} uploads of ${fileText} at once add (${name})`,
        unit: 'MiB',
        peerIs: 'allowed',
        target: atMost(1),
        rounds,
        note: () => `${Math.round(mean(seen.map(({ perSecond }) => perSecond)))} MiB/s in all`,
        ours: of('addedMiB'),
        peer: () => Promise.resolve([allowedMiB]),
      }),
      await compare({
        name: `event loop's lag p99 during ${atOnce} uploads (${name})`,
        unit: 'ms',
        peerIs: 'idle',
        target: atMost(3),
        rounds,
        note: () =>
          `the ${lagResolutionMs} ms of its timer are in both; ${mean(seen.map(({ own }) => own)).toFixed(1)} ms without what other programs did`,
        ours: of('busy'),
        peer: of('idle'),
      }),
    ]
  } finally {
    agent.destroy()
    await server.end()
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** The most that was resident since `clear_refs` was written. */
function peakBytes(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
