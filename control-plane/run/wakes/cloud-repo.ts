import type { RepoUuid, RunId } from '../../../shared/lib/ids.ts'
import type { RunRepo } from '../../../shared/runs/repo.ts'
import type { Tx } from '../../db/open.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import { addressOfRepo } from '../../resources/repos/rules.ts'
import { findRepo, type RepoRow } from '../../resources/repos/store.ts'
import type { TaskRow } from '../../resources/tasks/store.ts'

/** The repository that a cloud run works on: the task's, else the agent's own. */
export interface CloudRepo {
  id: RepoUuid
  /** The row of the repository; null: it was removed from the workspace. */
  row: RepoRow | null
  task: Pick<TaskRow, 'key' | 'branchName' | 'baseBranch'> | null
}

type Task = Pick<TaskRow, 'key' | 'repoId' | 'branchName' | 'baseBranch'>

export async function cloudRepoOf(tx: Tx, agent: AgentRow, task: Task | null): Promise<CloudRepo | null> {
  const id = task?.repoId ?? agent.defaultRepoId
  if (id === null) return null
  const row = await findRepo(tx, agent.workspaceId, id)
  // A base branch is of the repository that the task names.
  const baseBranch = task?.repoId == null ? null : task.baseBranch
  return { id, row, task: task && { key: task.key, branchName: task.branchName, baseBranch } }
}

export function runRepoOf({ id, row, task }: CloudRepo, runId: RunId): RunRepo {
  const named = task?.branchName ?? null
  // Anybody who may write to the task names it, and its runner pushes without being asked.
  const isOthers = named === null || named === task?.baseBranch || named === row?.defaultBranch
  return {
    id,
    address: row && addressOfRepo(row),
    baseBranch: task?.baseBranch ?? row?.defaultBranch ?? null,
    branch: isOthers ? `svc/${task?.key ?? runId}` : named,
    rescueBranch: `svc/rescue/${runId}`,
  }
}
