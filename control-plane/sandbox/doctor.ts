import { idFrom } from '../../shared/lib/ids.ts'
import { mkdirSync, rmSync, chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { SandboxSize } from '../../shared/api/agents.ts'
import { trialMark, type SandboxIdentity } from '../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import type { World } from '../../shared/lib/world.ts'
import { triedActs, type TriedAct } from '../../shared/runs/wall-acts.ts'
import {
  describeSize,
  EngineError,
  type ContainerSpec,
  type EngineFacts,
  type SandboxEngine,
  type Sizes,
} from './engine.ts'

// Tries what cloud runs need, one after the other, and leaves nothing behind.

export interface DoctorCheck {
  /** `engine`, `image`, `limits` or the walls' `trial` and acts. */
  what: string
  isGood: boolean
  /** A sentence. */
  said: string
}

export interface DoctorOptions {
  engine: SandboxEngine
  image: string
  runtime: string | null
  sizes: Sizes
  /** A folder for what a container on this machine reads; only this account may enter it. */
  folder: string
  world: World
}

const trialMs = 60_000
const pauseMs = 250
const logLines = 200
const size: SandboxSize = 'small'
/** The label of containers that are no server's. */
const trials = 'svc-trial'

export async function diagnoseSandboxes(options: DoctorOptions): Promise<DoctorCheck[]> {
  const checks: DoctorCheck[] = []
  const tell = (what: string, isGood: boolean, said: string) => void checks.push({ what, isGood, said })
  const { engine, image } = options
  const facts = await trying(() => engine.identify())
  tell('engine', facts.isGood, facts.isGood ? `It answers (${engine.kind}).` : facts.why)
  if (!facts.isGood) return checks
  const found = await trying(() => engine.findImage(image))
  const id = found.isGood ? found.value : null
  const missing = found.isGood ? `The engine has no image ${image} (docs/sandbox.md says how to build it).` : found.why
  tell('image', id !== null, id ?? missing)
  if (id === null) return checks
  const spec = specOf(options, { image: id, facts: facts.value })
  const limits = await trying(() => engine.findTroubles(spec))
  const flaws = limits.isGood ? limits.value : [limits.why]
  const held = `It holds a sandbox to its limits (${describeSize(size, options.sizes[size])}).`
  tell('limits', flaws.length === 0, flaws.length === 0 ? held : flaws.join(' '))
  const trial = await trying(() => tryContainer(options, spec))
  tell('trial', trial.isGood, trial.isGood ? 'A container started, ended, and is gone.' : trial.why)
  if (!trial.isGood) return checks
  for (const { act, outcome, seen } of trial.value)
    tell(`wall ${act}`, outcome !== 'not_refused', `${outcome}: ${seen}`)
  return checks
}

async function trying<T>(work: () => Promise<T>): Promise<{ isGood: true; value: T } | { isGood: false; why: string }> {
  try {
    return { isGood: true, value: await work() }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    return { isGood: false, why: error.message }
  }
}

function specOf(
  { runtime, sizes, folder, world, engine }: DoctorOptions,
  { image, facts }: { image: string; facts: EngineFacts },
): ContainerSpec {
  const name = `svc-trial-${world.id('').toLowerCase()}`
  const identity: SandboxIdentity = {
    publicId: world.id('dvc_'),
    deviceId: world.uuid(),
    displayName: 'Trial',
    token: trialMark,
    size,
    network: engine.kind === 'kubernetes' ? 'policy' : 'none',
    ...(engine.kind === 'docker' && { hostFolder: folder }),
    isTrial: true,
  }
  const { cpus } = sizes[size]
  return {
    name,
    image,
    // The trial belongs to no server: only the next doctor takes it away.
    serverId: trials,
    sandboxId: world.id('sbx_'),
    of: { workspaceId: idFrom('trial'), runId: idFrom(name) },
    size: { ...sizes[size], cpus: Math.min(cpus, facts.cpus) },
    volume: name,
    brokerFolder: folder,
    identity,
    runtime,
  }
}

/** Has a container with the limits of a sandbox try the acts that its walls must refuse. */
async function tryContainer({ engine, folder, world }: DoctorOptions, spec: ContainerSpec): Promise<TriedAct[]> {
  // A doctor that was stopped may have left its container.
  for (const { name, state } of await engine.list(trials)) if (state === 'exited') await engine.remove(name, name)
  mkdirSync(folder, { recursive: true })
  try {
    const file = join(folder, sandboxPlaces.identity)
    writeFileSync(file, JSON.stringify(spec.identity))
    // The account in the container is another one; nobody else of this machine comes as far as this folder.
    chmodSync(folder, 0o755)
    chmodSync(file, 0o644)
    const id = await engine.create(spec)
    await engine.start(id)
    const deadline = world.monotonic() + trialMs
    let ending = await engine.ending(id)
    while (ending === null && world.monotonic() < deadline) {
      await world.sleep(pauseMs)
      ending = await engine.ending(id)
    }
    const log = await engine.logs(id, logLines)
    if (ending === null)
      throw new EngineError(`The container did not end within ${trialMs / 1_000} s. It said:\n${log}`)
    return actsIn(log, ending.exitCode)
  } finally {
    await engine.remove(spec.name, spec.volume)
    rmSync(folder, { recursive: true, force: true })
  }
}

const said = z.object({ svcTrial: triedActs })

function actsIn(log: string, exitCode: number): TriedAct[] {
  for (const line of log.split('\n')) {
    try {
      return said.parse(JSON.parse(line)).svcTrial
    } catch {
      // A line of the log.
    }
  }
  throw new EngineError(`The container ended with status ${exitCode} and told nothing of its walls. It said:\n${log}`)
}

/** Describes the checks for people, a line for each. */
export const describeChecks = (checks: readonly DoctorCheck[]): string =>
  checks
    .map(({ what, isGood, said: words }) => `${isGood ? 'ok    ' : 'FAILED'}  ${what.padEnd(22)} ${words}\n`)
    .join('')
