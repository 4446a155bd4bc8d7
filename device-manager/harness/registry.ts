import { isAbsolute } from 'node:path'
import { harnesses, type HarnessName } from '../../shared/runs/harnesses.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { HarnessAdapter, HarnessProbe } from './adapter.ts'
import { acpAdapter } from './acp/adapter.ts'
import { claudeAdapter } from './claude/adapter.ts'
import { codexAdapter } from './codex/adapter.ts'
import { commandAdapter } from './command/adapter.ts'
import { cursorAdapter } from './cursor/adapter.ts'
import { commandStepAdapter } from './command-step/adapter.ts'
import { opencodeAdapter } from './opencode/adapter.ts'

const byName: Readonly<Record<HarnessName, HarnessAdapter>> = {
  claude: claudeAdapter,
  codex: codexAdapter,
  opencode: opencodeAdapter,
  cursor: cursorAdapter,
  command: commandAdapter,
}
export const adapters: readonly HarnessAdapter[] = Object.values(byName)

export const adapterNamed = (harness: HarnessName): HarnessAdapter => byName[harness]

/** Returns the adapter that drives a run: an agent's own command may speak a protocol, and a command step of a workflow is judged first. */
export function adapterOfRun({
  harness,
  protocol,
  gate,
}: Pick<RunSpec, 'harness' | 'protocol' | 'gate'>): HarnessAdapter {
  if (gate != null) return commandStepAdapter
  return harnesses[harness].runsOwnCommand && protocol === 'acp' ? acpAdapter : byName[harness]
}

/** The sign-in files of all harnesses, without a path that a variable of the person's made nonsense of. */
export function signInFiles(machine: Pick<HarnessProbe, 'env' | 'homeDir'>): string[] {
  return adapters.flatMap((adapter) => adapter.signInFiles?.(machine) ?? []).filter((path) => isAbsolute(path))
}
