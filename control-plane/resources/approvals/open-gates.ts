import type { Db } from '../../db/open.ts'
import { listOpenQuestions } from '../questions/store.ts'
import { holdingTriggers } from './rules.ts'
import { listHoldingApprovals } from './store.ts'

/** An approval or question that a run or a task waits for. */
export interface OpenGate {
  kind: 'approval' | 'question'
  /** `apr_...` or `qst_...` */
  id: string
  /** One line for a person. */
  label: string
  /** Milliseconds UTC. */
  since: number
  /** The workflow run that asks; null: an agent does. */
  workflowRunId: string | null
}

/** Open approvals and questions of tasks (by `tsk_` id), oldest first; a task without any has no entry. */
export async function openGatesOfTasks(db: Db, taskIds: readonly string[]): Promise<Map<string, OpenGate[]>> {
  return openGates(db, 'task_id', taskIds)
}

/** Open approvals and questions of runs: the successor of an ended run waits for that run's gates. */
export async function openGatesOfRuns(db: Db, runIds: readonly string[]): Promise<Map<string, OpenGate[]>> {
  return openGates(db, 'run_id', runIds)
}

async function openGates(db: Db, column: 'run_id' | 'task_id', ids: readonly string[]) {
  const key = column === 'run_id' ? 'runId' : 'taskId'
  const found: { of: string | null; gate: OpenGate }[] = []
  for (const approval of await listHoldingApprovals(db, column, { ids, triggers: holdingTriggers })) {
    const { id, createdAt: since } = approval
    found.push({
      of: approval[key],
      gate: { kind: 'approval', id, label: labelOf(approval.prompt), since, workflowRunId: null },
    })
  }
  for (const question of await listOpenQuestions(db, column, ids)) {
    const { id, createdAt: since, workflowRunId } = question
    const label = labelOf(question.prompt)
    found.push({ of: question[key], gate: { kind: 'question', id, label, since, workflowRunId } })
  }
  const gates = new Map<string, OpenGate[]>()
  for (const { of, gate } of found.sort((a, b) => a.gate.since - b.gate.since)) {
    if (of === null) continue
    const list = gates.get(of)
    if (list === undefined) gates.set(of, [gate])
    else list.push(gate)
  }
  return gates
}

const labelLength = 160

/** The first line, cut between whole characters. */
function labelOf(prompt: string): string {
  const line = prompt.trimStart().split('\n', 1)[0]!.trim()
  const characters = Array.from(line.slice(0, labelLength * 2))
  return characters.length > labelLength ? `${characters.slice(0, labelLength - 1).join('')}…` : line
}
