import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import {
  isStillIdle,
  listCompacting,
  listIdle,
  listLateCompactions,
} from '../../control-plane/resources/runs/compaction-store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import {
  listCompactingWorkspaces,
  findWorkspace,
  replaceWorkspace,
} from '../../control-plane/resources/workspaces/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import type { AgentRow } from '../../control-plane/resources/agents/store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedRun, seedTask, seedWorkspace } from './seed.ts'
import { endRun } from '../kit/end-run.ts'
import { type NewRun } from '../../control-plane/run/change-store.ts'

const ending = { fence: null, exitReason: 'completed', errorMessage: null, sessionId: 'ses' } as const
async function ended(db: Db, agent: AgentRow, changes: Partial<NewRun>): Promise<string> {
  const { id, createdAt } = await seedRun(db, agent, changes)
  await endRun(db, { ...ending, runId: id, at: createdAt + 5 })
  return id
}

onBoth(
  'the last run of a task is idle until another one of the task or a compaction of it is there',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const taskId = (await seedTask(root, workspaceId)).id
    const idle = async (of: Partial<Parameters<typeof listIdle>[1]> = {}) => {
      const found = await listIdle(root, {
        workspaceId,
        createdSince: at - 1,
        from: at,
        to: at + 100,
        harnesses: ['claude'],
        after: null,
        limit: 10,
        ...of,
      })
      return found.map(({ id }) => id)
    }
    const first = await ended(root, agent, { taskId, createdAt: at })
    await ended(root, agent, { createdAt: at })
    await ended(root, agent, { taskId: (await seedTask(root, workspaceId)).id, createdAt: at, harness: 'codex' })
    expect(await idle()).toEqual([first])
    const row = (await findRun(root, idFrom(first)))!
    expect(await isStillIdle(root, row)).toBe(true)
    expect([await idle({ to: at + 4 }), await idle({ from: at + 6 }), await idle({ createdSince: at })]).toEqual([
      [],
      [],
      [],
    ])
    const compaction = await seedRun(root, agent, {
      createdAt: at + 10,
      parentRunId: idFrom<RunId>(first),
      compacts: true,
    })
    expect([await idle(), await isStillIdle(root, row)]).toEqual([[], false])
    const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)
    expect(ids(await listCompacting(root, agent.id))).toEqual([compaction.id])
    expect(ids(await listLateCompactions(root, { workspaceId, createdBefore: at + 11 }))).toEqual([compaction.id])
    expect(await listLateCompactions(root, { workspaceId, createdBefore: at + 10 })).toEqual([])
    await endRun(root, { ...ending, runId: compaction.id, at: at + 12 })
    expect(await listCompacting(root, agent.id)).toEqual([])
    const next = await ended(root, agent, { taskId, createdAt: at + 20 })
    expect(await idle()).toEqual([next])
  },
)

onBoth('idle sessions are read page by page', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const task = async () => ({ taskId: (await seedTask(root, workspaceId)).id })
  const made = [
    await ended(root, agent, { ...(await task()), createdAt: at + 1 }),
    await ended(root, agent, { ...(await task()), createdAt: at + 1 }),
    await ended(root, agent, { ...(await task()), createdAt: at + 2 }),
  ]
  const of = { workspaceId, createdSince: at, from: at, to: at + 100, harnesses: ['claude'], limit: 2 }
  const first = await listIdle(root, { ...of, after: null })
  const second = await listIdle(root, { ...of, after: first.at(-1)! })
  expect([first.length, second.length]).toEqual([2, 1])
  expect(new Set([...first, ...second].map(({ id }) => id))).toEqual(new Set(made))
})

onBoth('workspaces have sessions made smaller where they say so', async ({ root }) => {
  const ids = [await seedWorkspace(root), await seedWorkspace(root)]
  const workspace = (await findWorkspace(root, ids[0]!))!
  const idleCompaction = { enabled: true, afterMinutes: 50, minTokens: 10 }
  await replaceWorkspace(root, workspace, { ...workspace, idleCompaction })
  const found = await listCompactingWorkspaces(root)
  expect(found.filter(({ id }) => ids.includes(id)).map((each) => [each.id, each.idleCompaction])).toEqual([
    [ids[0], idleCompaction],
  ])
})
