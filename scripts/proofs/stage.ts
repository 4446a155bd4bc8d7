import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { anyOf, faultsOf, type Fault } from '../../test/kit/faults.ts'
import { KilledHosts } from '../../test/kit/killed-hosts.ts'
import { delay, waitFor } from '../../test/kit/programs.ts'
import { whyNoSmallDisk } from '../../test/kit/small-disk.ts'
import { TestApi } from '../../test/kit/system-api.ts'
import { TestSystem } from '../../test/kit/system.ts'
import { Absences } from './absences.ts'
import type { Account } from './promises.ts'
import { restoreServers } from './restore.ts'

// The system of a proof: real programs with the settings that they have when nothing is set, and what is done to them.

export interface StageOptions {
  random: () => number
  account: Account
  /** null: SQLite, and one server; else two replicas. */
  databaseUrl: string | null
  say: (text: string) => void
}

export interface Stage {
  system: TestSystem
  /** Asks whichever replica is there. */
  api: TestApi
  absences: Absences
  killed: KilledHosts
  account: Account
  random: () => number
  /** Strikes at moments of its own until then, and one fault after another. */
  strikeUntil(over: () => boolean): Promise<void>
}

const longestMs = { death: 3_000, cut: 6_000, sleep: 4_000 }
/** The time from the end of one fault to the next one. */
const calmMs = { least: 500, most: 4_000 }
/** Clocks are moved by so much, back or ahead. Further, a run would have taken longer than one may. */
const clockMs = 3 * 3_600_000
const movedClock = join(import.meta.dirname, '../../test/kit/moved-clock.mjs')

export async function openStage({ random, account, databaseUrl, say }: StageOptions): Promise<Stage> {
  const noDisk = whyNoSmallDisk()
  if (noDisk !== null) say(`the disk of the device is not filled: ${noDisk}`)
  const clocks = Object.fromEntries(['server', 'daemon'].map((name) => [name, join(clockFolder(), name)]))
  const withClock = (file: string) => ({ NODE_OPTIONS: `--import=${movedClock}`, MOVED_CLOCK: file })
  const system = await TestSystem.start({
    ...(databaseUrl !== null && { databaseUrl, replicas: 2 }),
    withProxy: true,
    devices: 0,
    serverEnv: withClock(clocks['server']!),
    deviceEnv: withClock(clocks['daemon']!),
    ...(noDisk === null && { device: { diskMegabytes: 96 } }),
  })
  const absences = new Absences()
  const killed = new KilledHosts()
  try {
    await addDevice(system)
  } catch (error) {
    await system.stop().catch(() => undefined)
    throw error
  }
  const { servers } = system
  const api = new TestApi(() => {
    const { url } = servers.find(({ isRunning }) => isRunning) ?? system.server
    return { url, token: system.server.token }
  })
  const gone = (what: Parameters<Absences['begin']>[0]) => absences.begin(what)
  const struck = faultsOf({ system, random, killed, longestMs, gone })
  const { fullDisk, reroute, ...always } = struck
  const faults: Record<string, Fault> = {
    ...always,
    restore: () => restoreServers(system, { absences, waitMs: random() * longestMs.cut, databaseUrl }),
    ...(databaseUrl !== null && { reroute }),
    ...(noDisk === null && { fullDisk }),
    clock: async () => {
      const file = anyOf(Object.values(clocks), random)!
      writeFileSync(file, String(Math.round((random() * 2 - 1) * clockMs)))
    },
  }
  const names = Object.keys(faults)
  return {
    system,
    api,
    absences,
    killed,
    account,
    random,
    async strikeUntil(over) {
      while (!over()) {
        const name = anyOf(names, random)!
        account.meets(name)
        await faults[name]!()
        await delay(calmMs.least + random() * (calmMs.most - calmMs.least))
      }
      for (const file of Object.values(clocks)) rmSync(file, { force: true })
      await waitFor(() => system.device.isConnected(), 'the device is linked at the end', { ms: 90_000 })
    },
  }

  function clockFolder(): string {
    const folder = join(process.env['TMPDIR'] ?? '/tmp', `svc-clocks-${process.pid}`)
    mkdirSync(folder, { recursive: true })
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    return folder
  }
}

/** A device on which a stand-in for Claude Code is installed, beside the harness that is a command. */
async function addDevice(system: TestSystem): Promise<void> {
  const device = system.makeDevice()
  await device.prepare()
  const bin = join(device.homeDir, 'bin')
  mkdirSync(bin)
  const program = join(bin, 'claude')
  const standIn = join(import.meta.dirname, '../../test/kit/asking-claude.mjs')
  // By a shell: the first line of a script cannot name a program whose path has a blank.
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${standIn}' "$@"\n`)
  chmodSync(program, 0o755)
  writeFileSync(join(device.homeDir, '.profile'), `export PATH='${bin}':"$PATH"\n`)
  await device.enrol(system.api, system.proxy.url)
  await device.start()
}
