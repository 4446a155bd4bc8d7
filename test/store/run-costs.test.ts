import { describe, expect } from 'vitest'
import { listRunCosts, type CostFilter } from '../../control-plane/resources/runs/own/cost-store.ts'
import { insertProject, listProjectsByIds } from '../../control-plane/resources/projects/store.ts'
import { idFrom, type DeviceRef, type PersonRef } from '../../shared/lib/ids.ts'
import { claimRun, offerRuns } from '../../control-plane/run/change-store.ts'
import { onBoth } from '../kit/database.ts'
import { endRun } from '../kit/end-run.ts'
import { at, projectRow, seedAgent, seedPerson, seedRun, seedTask, seedWorkspace } from './seed.ts'

const device = idFrom<DeviceRef>('dvc_a')

describe('what runs cost', () => {
  onBoth('is read with the project of their task, newest first, in pages and within a time', async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const project = projectRow(workspaceId)
    await insertProject(root, project)
    const task = await seedTask(root, workspaceId, { projectId: project.id })
    const first = await seedRun(root, agent, { createdAt: at, taskId: task.id, taskKey: 'SVC-1', taskTitle: 'Log in' })
    const second = await seedRun(root, agent, { createdAt: at + 1 })
    const third = await seedRun(root, agent, { createdAt: at + 2 })
    await offerRuns(root, { runIds: [first.id], device, at, expiresAt: at + 10 })
    await claimRun(root, { runId: first.id, fence: 1, device, at: at + 5 })
    const usage = { costUsd: '1.5', inputTokens: 3 }
    await endRun(root, { runId: first.id, fence: 1, exitReason: 'completed', errorMessage: null, at: at + 9, usage })
    const list = (more: Partial<CostFilter> = {}) =>
      listRunCosts(root, { workspaceId, since: at, until: at + 10, limit: 10, ...more })
    const all = await list()
    expect(all.map(({ id }) => id)).toEqual([third.id, second.id, first.id])
    expect(all[2]).toEqual({
      id: first.id,
      agentRef: agent.id,
      taskId: task.id,
      taskKey: 'SVC-1',
      taskTitle: 'Log in',
      projectUuid: project.id,
      costUsd: '1.5',
      usage,
      createdAt: at,
      startedAt: at + 5,
      endedAt: at + 9,
    })
    expect(all[1]).toMatchObject({ taskId: null, projectUuid: null, costUsd: null, usage: null, startedAt: null })
    const idsOf = async (more: Partial<CostFilter>) => (await list(more)).map(({ id }) => id)
    expect(await idsOf({ since: at + 1, until: at + 2 })).toEqual([second.id])
    // One more than asked for, as other lists do.
    expect(await idsOf({ limit: 1 })).toEqual([third.id, second.id])
    expect(await idsOf({ before: { createdAt: at + 1, id: second.id } })).toEqual([first.id])
    expect(await idsOf({ workspaceId: await seedWorkspace(root) })).toEqual([])
  })

  onBoth('is read for whoever sees the runs, and projects are named to whoever sees them', async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const person = async (name: string) => ({
      personUuid: await seedPerson(root, workspaceId),
      personRef: idFrom<PersonRef>(`usr_${name}`),
    })
    const [owner, other] = [await person('owner'), await person('other')]
    const project = projectRow(workspaceId, { visibility: 'private', ownerUuid: owner.personUuid })
    await insertProject(root, project)
    const task = await seedTask(root, workspaceId, { projectId: project.id })
    const agent = await seedAgent(root, workspaceId)
    const hidden = await seedRun(root, agent, { createdAt: at, taskId: task.id })
    const open = await seedRun(root, agent, { createdAt: at + 1 })
    const seenBy = async (viewer: typeof owner) =>
      (await listRunCosts(root, { workspaceId, since: at, until: at + 10, limit: 10, visibleTo: viewer })).map(
        ({ id }) => id,
      )
    expect(await seenBy(owner)).toEqual([open.id, hidden.id])
    expect(await seenBy(other)).toEqual([open.id])
    const named = async (viewer: typeof owner | null, workspace = workspaceId) =>
      (await listProjectsByIds(root, { workspaceId: workspace, ids: [project.id], viewer })).map(({ id }) => id)
    expect(await named(owner)).toEqual([project.id])
    expect(await named(null)).toEqual([project.id])
    expect(await named(other)).toEqual([])
    expect(await named(null, await seedWorkspace(root))).toEqual([])
    expect(await listProjectsByIds(root, { workspaceId, ids: [], viewer: null })).toEqual([])
  })
})
