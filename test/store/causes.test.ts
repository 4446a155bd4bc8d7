import { idFrom, type PersonUuid, type SandboxId, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { removeUser } from '../../control-plane/operator/access.ts'
import {
  findAutomation,
  insertAutomation,
  pauseAutomationsOf,
} from '../../control-plane/resources/automations/store.ts'
import { findUser, isMember } from '../../control-plane/resources/members/store.ts'
import { causeThrough } from '../../control-plane/resources/runs/cause.ts'
import { countLiveCausedBy } from '../../control-plane/resources/runs/live-store.ts'
import { findRun } from '../../control-plane/resources/runs/store.ts'
import { registerAllRunEffects } from '../../control-plane/register-run-effects.ts'
import { realWorld as world } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { automationRow } from './automations-rows.ts'
import { at, seedAgent, seedDevice, seedPerson, seedRun, seedWorkspace } from './seed.ts'
import { claimRun, offerRuns } from '../../control-plane/run/change-store.ts'
import { endRun } from '../kit/end-run.ts'

registerAllRunEffects()

onBoth('a run in a sandbox acts for nobody but the owner of its agent', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [ada, bob] = [await seedPerson(root, workspaceId), await seedPerson(root, workspaceId)]
  const [hers, nobodys] = [
    await seedAgent(root, workspaceId, { ownerUuid: ada }),
    await seedAgent(root, workspaceId, { ownerUuid: null }),
  ]
  const causeOn = async (changes: { sandboxId: SandboxId | null }, agent: typeof hers, causedByUserId: PersonUuid) => {
    const { publicId } = await seedDevice(root, { workspaceId, personUuid: causedByUserId }, changes)
    const { id } = await seedRun(root, agent, { causedByUuid: causedByUserId })
    await offerRuns(root, { runIds: [id], device: publicId, at, expiresAt: at })
    return causeThrough(root, (await findRun(root, id))!)
  }
  const sandbox = { sandboxId: idFrom<SandboxId>('sbx_1') }
  expect(await causeOn(sandbox, hers, ada)).toBe(ada)
  expect(await causeOn(sandbox, hers, bob)).toBeNull()
  expect(await causeOn(sandbox, nobodys, bob)).toBeNull()
  // On his own machine it is he who lets the program in.
  expect(await causeOn({ sandboxId: null }, hers, bob)).toBe(bob)
})

onBoth('what goes on in the name of a person is found, in one workspace or in all, and paused', async ({ root }) => {
  const [here, there] = [await seedWorkspace(root), await seedWorkspace(root)]
  const [ada, bob] = [await seedPerson(root, here), await seedPerson(root, here)]
  const [agent, elsewhere] = [await seedAgent(root, here), await seedAgent(root, there)]
  const mine = await seedRun(root, agent, { causedByUuid: ada })
  const away = await seedRun(root, elsewhere, { causedByUuid: ada })
  await seedRun(root, agent, { causedByUuid: bob })
  const over = await seedRun(root, agent, { causedByUuid: ada })
  await endRun(root, { runId: over.id, fence: null, exitReason: 'completed', errorMessage: null, at })
  const countOf = (of: { personUuid: PersonUuid; workspaceId?: WorkspaceUuid }) => countLiveCausedBy(root, of)
  expect(await countOf({ personUuid: ada })).toEqual(
    new Map([
      [here, 1],
      [there, 1],
    ]),
  )
  expect(await countOf({ personUuid: ada, workspaceId: here })).toEqual(new Map([[here, 1]]))

  const automations = [
    automationRow(agent, { causedByUuid: ada }),
    automationRow(agent, { causedByUuid: ada, status: 'archived' }),
    automationRow(agent, { causedByUuid: bob }),
    automationRow(elsewhere, { causedByUuid: ada }),
  ]
  for (const row of automations) await insertAutomation(root, row)
  const statuses = () =>
    Promise.all(automations.map(async (row) => (await findAutomation(root, row.workspaceId, row.id))?.status))
  expect(await pauseAutomationsOf(root, { personUuid: ada, workspaceId: here }, at + 1)).toBe(1)
  expect(await statuses()).toEqual(['paused', 'archived', 'active', 'active'])

  expect([await isMember(root, here, ada), await isMember(root, there, ada)]).toEqual([true, false])

  const { email } = (await findUser(root, ada))!
  const removed = await root.transaction((tx) => removeUser(tx, world, { email, newOwner: null }))
  expect(removed).toMatchObject({ runs: 2, automations: 1 })
  expect(await statuses()).toEqual(['paused', 'archived', 'active', 'paused'])
  for (const run of [mine, away])
    expect(await findRun(root, run.id)).toMatchObject({ status: 'cancelled', exitReason: 'interrupted' })
  expect(await countOf({ personUuid: bob })).toEqual(new Map([[here, 1]]))
})

onBoth('whoever is removed is told of all runs that ended: on their devices, and elsewhere', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [ada, bob] = [await seedPerson(root, workspaceId), await seedPerson(root, workspaceId)]
  const agent = await seedAgent(root, workspaceId)
  const { publicId: device } = await seedDevice(root, { workspaceId, personUuid: ada })
  const claimed = async (causedByUserId: string) => {
    const run = await seedRun(root, agent, { causedByUuid: idFrom<PersonUuid>(causedByUserId) })
    await offerRuns(root, { runIds: [run.id], device, at, expiresAt: at + 1 })
    await claimRun(root, { runId: run.id, fence: 1, device, at })
    return run.id
  }
  const ended = [await claimed(ada), await claimed(bob), (await seedRun(root, agent, { causedByUuid: ada })).id]
  const goesOn = (await seedRun(root, agent, { causedByUuid: bob })).id
  const { email } = (await findUser(root, ada))!
  expect(await root.transaction((tx) => removeUser(tx, world, { email, newOwner: null }))).toMatchObject({
    devices: 1,
    runs: 3,
  })
  for (const id of ended) expect((await findRun(root, id))?.endedAt).not.toBeNull()
  expect((await findRun(root, goesOn))?.endedAt).toBeNull()
})
