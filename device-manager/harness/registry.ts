import { isAbsolute } from 'node:path'
import { harnesses, type HarnessName } from '../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { HarnessAdapter, HarnessProbe } from './adapter.ts'
import { acpAdapter } from './acp/adapter.ts'
import { claudeAdapter } from './claude/adapter.ts'
import { codexAdapter } from './codex/adapter.ts'
import { commandAdapter } from './command/adapter.ts'
import { opencodeAdapter } from './opencode/adapter.ts'

/** The harnesses that this device can launch. */
export const adapters: readonly HarnessAdapter[] = [claudeAdapter, codexAdapter, opencodeAdapter, commandAdapter]

/** By which a run is driven: an agent's own command may speak a protocol. */
export function adapterOfRun({ harness, protocol }: Pick<RunSpec, 'harness' | 'protocol'>): HarnessAdapter | null {
  return harnesses[harness].runsOwnCommand && protocol === 'acp' ? acpAdapter : adapterOf(harness)
}

/** null: no adapter is written for it; the run host ends such a run `harness_start_failed` with `noAdapterMessage`. */
export function adapterOf(name: HarnessName): HarnessAdapter | null {
  return adapters.find((adapter) => adapter.name === name) ?? null
}

/** The sign-in files of all harnesses, without a path that a variable of the person's made nonsense of. */
export function signInFiles(machine: Pick<HarnessProbe, 'env' | 'homeDir'>): string[] {
  return adapters.flatMap((adapter) => adapter.signInFiles?.(machine) ?? []).filter((path) => isAbsolute(path))
}

export function noAdapterMessage(name: HarnessName): string {
  const known = adapters.map((adapter) => adapter.name).join(', ')
  return `This version of svc cannot launch the harness ${name}. It can launch: ${known}. Choose one of them with: svc agent config set <agent> --harness <name>`
}
