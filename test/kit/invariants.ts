import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { RunEvent } from '../../shared/api/run-events.ts'
import type { RunDetail } from '../../shared/api/runs.ts'
import { statusOfExitReason } from '../../shared/runs/exit-reasons.ts'
import { nothingNames, waitFor } from './programs.ts'
import { shellIn, type Scenario } from './system-scenario.ts'
import type { TestSystem } from './system.ts'

// The invariants of the fault matrix, I1 to I9, of one run that has ended. Called after every fault.

export interface Expected {
  exitReason: string
  /** Says what the harness printed, as far as the test knows it; with `atLeast`, its beginning. */
  output?: string
  /** The output may stop anywhere (the harness was killed): what there is must be a beginning of `output`. */
  isCutOff?: boolean
  /** Output may be missing where a `gap` event says so. */
  mayHaveGaps?: boolean
  /** Says how often the harness was started for this run (default 1). */
  starts?: number
  /** false: the folder was changed by others too, or the daemon could not make a change-set. */
  hasChangeSet?: boolean
  /** false: the device does not know the run any more, or is not running. */
  isOnDevice?: boolean
}

export interface Checked {
  run: RunDetail
  events: RunEvent[]
  output: Buffer
  gapBytes: number
}

/** I8: a daemon's memory, in bytes. */
const maxRss = 200 * 1024 * 1024
/** I1: time in which the last process of a run must be gone after its end. */
export const goneMs = 30_000

export async function checkInvariants(
  system: TestSystem,
  { api, device, ...scenario }: Scenario,
  runId: string,
  expected: Expected,
): Promise<Checked> {
  const { exitReason, starts = 1, hasChangeSet = true, isOnDevice = true } = expected
  const run = await api.waitForRun(runId, statusOfExitReason(exitReason))
  expect(run.exitReason, JSON.stringify(run)).toBe(exitReason)
  await nothingNames(runId, goneMs)
  const events = await api.events(runId)
  wholeLog(events, exitReason)
  const { output, gapBytes } = outputOf(events)
  if (expected.output !== undefined) deliveredOutput(events, { ...expected, output: expected.output })
  expect(scenario.starts(runId), 'I9: starts of the harness').toBe(starts)
  if (hasChangeSet) changeSetIsRight(scenario.folder, await api.changeSet(runId))
  if (isOnDevice) {
    await waitFor(
      async () => (await device.spoolRuns()).every((spooled) => spooled.runId !== runId),
      `${runId} left the spool`,
    )
    expect(rssOf((await device.status()).pid), 'I8: memory of the daemon').toBeLessThan(maxRss)
  }
  const again = await api.run(runId)
  expect({ ...again, latestEvents: null }, 'I3: an ended run stays as it is').toEqual({ ...run, latestEvents: null })
  noSecrets(system)
  return { run, events, output, gapBytes }
}

/** I2 and I3: seq 1 to N without a hole or a second one, one ending, and it is the last. */
export function wholeLog(events: readonly RunEvent[], exitReason: string): void {
  numberedWhole(events)
  endedOnce(events, exitReason)
}

export function numberedWhole(events: readonly RunEvent[]): void {
  expect(
    events.map(({ seq }) => seq),
    'I2: sequence numbers',
  ).toEqual(events.map((_, index) => index + 1))
}

export function endedOnce(events: readonly RunEvent[], exitReason: string): void {
  const endings = events.filter(({ kind }) => kind === 'ended')
  expect(
    endings.map(({ data }) => data['exitReason']),
    'I3: endings',
  ).toEqual([exitReason])
  expect(events.at(-1)?.kind, 'I3: the last event').toBe('ended')
}

export function outputOf(events: readonly RunEvent[]): { output: Buffer; gapBytes: number } {
  const pieces = events.filter(({ kind }) => kind === 'text' || kind === 'raw').map(bytesOf)
  return { output: Buffer.concat(pieces), gapBytes: gapBytesOf(events) }
}

function gapBytesOf(events: readonly RunEvent[]): number {
  return events.filter(({ kind }) => kind === 'gap').reduce((sum, { data }) => sum + Number(data['bytes']), 0)
}

function bytesOf({ data }: RunEvent): Buffer {
  return typeof data['text'] === 'string' ? Buffer.from(data['text']) : Buffer.from(String(data['base64']), 'base64')
}

/** I2 and I5: each byte is where the harness wrote it, or counted in a gap that stands in its place. */
export function deliveredOutput(
  events: readonly RunEvent[],
  expected: Pick<Expected, 'isCutOff' | 'mayHaveGaps'> & { output: string },
): void {
  const printed = Buffer.from(expected.output)
  let at = 0
  for (const event of events) {
    if (event.kind === 'gap') at += Number(event.data['bytes'])
    if (event.kind !== 'text' && event.kind !== 'raw') continue
    const bytes = bytesOf(event)
    const wanted = printed.subarray(at, at + bytes.length)
    if (!bytes.equals(wanted)) expect(bytes.toString(), `I2: output from byte ${at}`).toBe(wanted.toString())
    at += bytes.length
  }
  if (!expected.mayHaveGaps) expect(gapBytesOf(events), 'I5: bytes declared lost').toBe(0)
  if (!expected.isCutOff) expect(at, 'I5: bytes delivered and declared lost').toBe(printed.length)
}

/**
 * Prints the tree that the diff (on standard input) makes of the base, the tree of the folder's files as they are, and the names that
 * differ between that one and the base. In an index of its own, and in one shell, since a process as large as a test's takes long to
 * start another one.
 */
const applied = `export GIT_INDEX_FILE="$PWD/.git/index-of-test"; rm -f "$GIT_INDEX_FILE"
  git read-tree "$1"
  if [ -n "$2" ]; then git apply --cached --binary --whitespace=nowarn; fi
  git write-tree
  rm "$GIT_INDEX_FILE"; git read-tree HEAD; git add -A; now=$(git write-tree); echo "$now"
  git diff --name-only --no-renames "$1" "$now"
  rm "$GIT_INDEX_FILE"`

/** I7: the reported diff makes of the base what the folder holds, and names each file that differs. */
export function changeSetIsRight(
  folder: string,
  changeSet: { base: { commit: string | null }; diff: string; files: readonly { path: string }[] },
): void {
  const base = changeSet.base.commit ?? ''
  const [made, now, ...differing] = shellIn(
    folder,
    applied,
    [base, changeSet.diff === '' ? '' : 'apply'],
    changeSet.diff,
  )
    .split('\n')
    .filter(Boolean)
  expect(made, 'I7: the diff applied to its base').toBe(now)
  expect(changeSet.files.map(({ path }) => path).sort(), 'I7: the files named').toEqual(differing.sort())
}

/**
 * I6: no run's token (they all begin with the same header), no device's and no login's stands in any file of server and
 * device but the two files that are there to hold one.
 */
export function noSecrets(system: TestSystem, more: readonly string[] = []): void {
  const runToken = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'svc-run+jwt' })).toString('base64url')
  const tokens = system.devices.filter(({ isEnrolled }) => isEnrolled).map(({ identity }) => identity.token)
  const secrets = [runToken, system.server.token, ...tokens, ...more].map((secret) => Buffer.from(secret))
  const folders = [...system.servers.map(({ dataDir }) => dataDir), ...system.devices.map(({ stateDir }) => stateDir)]
  const logs = [...system.servers, ...system.devices].map(({ logPath }) => logPath)
  for (const file of [...folders.flatMap(filesIn), ...logs]) {
    if (/\/(login-token|device-token)$/.test(file)) continue
    const content = contentOf(file)
    const found = secrets.findIndex((secret) => content.includes(secret))
    if (found >= 0) expect.fail(`I6: ${file} holds secret number ${found}`)
  }
}

function filesIn(folder: string): string[] {
  let entries
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch {
    // Folders of runs go while others are looked at.
    return []
  }
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : entry.isFile() ? [path] : []
  })
}

function contentOf(path: string): Buffer {
  try {
    // The spool's reserve is megabytes of chance.
    return statSync(path).size > 2 ** 28 || path.endsWith('.reserve') ? Buffer.alloc(0) : readFileSync(path)
  } catch {
    return Buffer.alloc(0)
  }
}

/** Resident memory of a process in bytes; 0 where the system does not tell. */
export function rssOf(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}
