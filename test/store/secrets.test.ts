import { idFrom, type PersonRef, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { databaseTroubleOf } from '../../control-plane/db/dialect.ts'
import {
  countOtherSecrets,
  findSecret,
  insertSecret,
  insertSecretGrant,
  isSecretNameTaken,
  listGranteesOf,
  listSecrets,
  listSecretKeys,
  listSecretsOfAgent,
  recordReveal,
  removeSecret,
  removeSecretGrant,
  replaceCloudUse,
  secretsForRun,
  secretsOfWorkspace,
} from '../../control-plane/resources/secrets/store.ts'
import { createVault } from '../../control-plane/vault/vault.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedAgent, seedWorkspace } from './seed.ts'

const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)

const secretRow = (workspaceId: WorkspaceUuid, name: string, changes: object = {}) => ({
  id: id('sec_'),
  workspaceId,
  name,
  provider: 'github',
  envVarName: name.toUpperCase(),
  sealed: Buffer.from([0, 255, 1]),
  brokerHosts: [],
  isCloudPlain: false,
  createdByRef: idFrom<PersonRef>('usr_1'),
  createdAt: at,
  ...changes,
})

onBoth(
  'a secret has its name alone in its workspace, and is listed, revealed and removed with its grants',
  async ({ root }) => {
    const workspaceId = await seedWorkspace(root)
    const agent = await seedAgent(root, workspaceId)
    const [first, second] = [
      secretRow(workspaceId, 'one'),
      secretRow(workspaceId, 'two', { createdAt: at + 1, provider: null }),
    ]
    await insertSecret(root, first)
    await insertSecret(root, second)
    expect(await findSecret(root, workspaceId, first.id)).toEqual({
      ...first,
      lastRevealedByRef: null,
      lastRevealedAt: null,
    })
    expect(await findSecret(root, await seedWorkspace(root), first.id)).toBeNull()
    expect(await isSecretNameTaken(root, workspaceId, 'one')).toBe(true)
    expect(await isSecretNameTaken(root, workspaceId, 'three')).toBe(false)
    expect(await insertSecret(root, secretRow(workspaceId, 'one')).catch(databaseTroubleOf)).toBe('duplicate')
    const names = async (filter: object) =>
      (await listSecrets(root, { workspaceId, limit: 5, ...filter })).map((secret) => secret.name)
    expect(await names({})).toEqual(['two', 'one'])
    expect(await names({ before: { createdAt: at + 1, id: second.id } })).toEqual(['one'])
    await recordReveal(root, { secretId: first.id, by: idFrom('usr_2'), at: at + 5 })
    expect(await findSecret(root, workspaceId, first.id)).toMatchObject({
      lastRevealedByRef: 'usr_2',
      lastRevealedAt: at + 5,
    })
    await replaceCloudUse(root, first.id, { brokerHosts: ['api.example.com', 'x.test:8443'] })
    await replaceCloudUse(root, first.id, { isCloudPlain: true })
    await replaceCloudUse(root, first.id, {})
    const used = { brokerHosts: ['api.example.com', 'x.test:8443'], isCloudPlain: true }
    expect(await findSecret(root, workspaceId, first.id)).toMatchObject(used)
    expect(await findSecret(root, workspaceId, second.id)).toMatchObject({ brokerHosts: [], isCloudPlain: false })
    const grant = {
      secretId: first.id,
      agentRef: agent.id,
      workspaceId,
      grantedByRef: idFrom<PersonRef>('usr_1'),
      createdAt: at,
    }
    await insertSecretGrant(root, grant)
    await insertSecretGrant(root, { ...grant, createdAt: at + 9 })
    expect([...(await listGranteesOf(root, [first.id, second.id]))]).toEqual([
      [first.id, [agent.id]],
      [second.id, []],
    ])
    expect(await countOtherSecrets(root, { agentRef: agent.id, secretId: second.id })).toBe(1)
    expect(await countOtherSecrets(root, { agentRef: agent.id, secretId: first.id })).toBe(0)
    expect(await removeSecretGrant(root, first.id, agent.id)).toBe(true)
    expect(await removeSecretGrant(root, first.id, agent.id)).toBe(false)
    await insertSecretGrant(root, grant)
    await removeSecret(root, first.id)
    expect(await findSecret(root, workspaceId, first.id)).toBeNull()
    expect(await listSecretsOfAgent(root, agent.id)).toEqual([])
  },
)

onBoth('a run gets the values that its agent was granted, and no others', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [agent, other] = [await seedAgent(root, workspaceId), await seedAgent(root, workspaceId)]
  const vault = createVault({ kind: 'memory' }, realWorld)
  const ids: string[] = []
  for (const [name, agentId] of [
    ['mine', agent.id],
    ['theirs', other.id],
  ] as const) {
    const secret = secretRow(workspaceId, name)
    await insertSecret(root, { ...secret, sealed: vault.seal(secret.id, `value of ${name} 🔑`) })
    await insertSecretGrant(root, {
      secretId: secret.id,
      agentRef: agentId,
      workspaceId,
      grantedByRef: idFrom('usr_1'),
      createdAt: at,
    })
    ids.push(secret.id)
  }
  expect(await listSecretKeys(root, agent.id)).toEqual(new Map([['MINE', ids[0]]]))
  expect(await secretsForRun(root, { agentRef: agent.id }, vault)).toEqual({ MINE: 'value of mine 🔑' })
  const names = ['MINE', 'NONE']
  expect(await secretsOfWorkspace(root, { workspaceId, names }, vault)).toEqual({ MINE: 'value of mine 🔑' })
  const elsewhere = await seedWorkspace(root)
  expect(await secretsOfWorkspace(root, { workspaceId: elsewhere, names }, vault)).toEqual({})
  const stranger = createVault({ kind: 'given', text: '0'.repeat(64) }, realWorld)
  await expect(secretsForRun(root, { agentRef: agent.id }, stranger)).rejects.toThrow('another key')
})
