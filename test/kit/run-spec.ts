import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'

/** A spec with everything at rest; tests change what they are about. */
export function runSpecFixture(runId: RunId, changes: Partial<RunSpec> = {}): RunSpec {
  return {
    runId,
    workspaceId: idFrom('00000000-0000-4000-8000-000000000001'),
    agent: { id: idFrom('agt_0123456789abcdef'), handle: '@tester', name: 'Tester' },
    harness: 'command',
    folder: null,
    prompt: 'do it',
    agentMd: '',
    model: null,
    backupModel: null,
    reasoningEffort: null,
    maxTurns: null,
    command: 'true',
    permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' },
    allowCalls: [],
    mcpServers: {},
    resumeSessionId: null,
    limits: {
      runMs: 86_100_000,
      noProgressMs: 3_600_000,
      firstEventMs: 300_000,
      toolCalls: 1_000,
      silentMs: 3_600_000,
    },
    ...changes,
  }
}
