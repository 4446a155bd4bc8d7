import { expect, test } from 'vitest'
import type { Knex } from 'knex'
import { replaceServerKey, findServerKey, serverKey } from '../../control-plane/db/server-keys.ts'
import { readKeysState, rotateKeys } from '../../control-plane/operator/keys.ts'
import { listSealed, replaceSealed, sealedColumns } from '../../control-plane/operator/sealed-store.ts'
import { openClientSecret, sealClientSecret } from '../../control-plane/resources/connections/mcp-client.ts'
import {
  openAttempt,
  openCredential,
  sealAttempt,
  sealCredential,
  type Credential,
} from '../../control-plane/resources/connections/own/credential.ts'
import { checkKey, claimSecretsKey } from '../../control-plane/resources/secrets/add.ts'
import { insertSecret } from '../../control-plane/resources/secrets/store.ts'
import { makeSecret, signingSecrets } from '../../control-plane/resources/webhooks/secret.ts'
import { createVault, type Vault } from '../../control-plane/vault/vault.ts'
import { idFrom, type PersonRef } from '../../shared/lib/ids.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth, openSqlite } from '../kit/database.ts'
import { seedConnection, seedConnectionClient, seedSignIn } from './connection-rows.ts'
import { at, seedWorkspace } from './seed.ts'
import { seedWebhook } from './webhook-rows.ts'

const [first, second] = ['ab'.repeat(32), 'cd'.repeat(32)] as const
const vaultOf = (text: string, other?: string): Vault =>
  createVault({ kind: 'given', text, other: other ?? null }, realWorld)

test('each column of bytes is sealed, or known for something else', async () => {
  const database = openSqlite()
  const { root } = database
  const found: { name: string; column: string }[] = await root.raw(
    `select m.name, c.name as "column" from sqlite_master m join pragma_table_info(m.name) c
     where m.type = 'table' and lower(c.type) = 'blob' and m.name not like 'search_%' and m.name not like 'sqlite_%'`,
  )
  const plain = ['run_frames.body', 'run_evidence.body']
  const sealed = sealedColumns.map(({ table, column }) => `${table}.${column}`)
  expect(found.map(({ name, column }) => `${name}.${column}`).toSorted()).toEqual([...sealed, ...plain].toSorted())
  await database.close()
})

const held: Credential = { kind: 'fields', values: { token: 'a value' } }

/** Something sealed in each column, and what opens all of it. */
async function sealedWith(root: Knex, vault: Vault): Promise<(by: Vault) => Promise<unknown[]>> {
  const workspaceId = await seedWorkspace(root)
  const secretId = realWorld.id('sec_')
  await insertSecret(root, {
    id: secretId,
    workspaceId,
    name: 'npm',
    provider: null,
    envVarName: 'NPM',
    sealed: vault.seal(secretId, 'a value'),
    brokerHosts: [],
    isCloudPlain: false,
    createdByRef: idFrom<PersonRef>('usr_1'),
    createdAt: at,
  })
  const connection = await seedConnection(root, workspaceId)
  const { id: connectionId } = connection
  const credential = sealCredential(vault, connectionId, held)
  await root('connections').where({ id: connectionId }).update({ credential })
  const withdrawal = { id: `${connectionId}:1`, connection_id: connectionId, workspace_id: workspaceId }
  await root('connection_withdrawals').insert({ ...withdrawal, service_id: 's', credential, tries: 0, due_at: at })
  const begun = { state: 's', codeVerifier: 'v', redirectUri: 'https://a.example', issuer: 'https://b.example' }
  const { stateHash } = await seedSignIn(root, connection, { attempt: sealAttempt(vault, connectionId, begun) })
  const client = await seedConnectionClient(root, workspaceId)
  await root('connection_clients')
    .where({ id: client.id })
    .update({ client_secret: sealClientSecret(vault, client.id, 'a value') })
  const webhook = await seedWebhook(root, workspaceId)
  const { secret, sealed } = makeSecret(vault, webhook.id, realWorld)
  await root('webhooks').where({ id: webhook.id }).update({ secret: sealed, old_secret: sealed })
  const cell = async (table: string, where: Record<string, string>, column: string): Promise<Buffer> =>
    Buffer.from(((await root(table).where(where).first()) as Record<string, Uint8Array>)[column]!)
  return async (by) => {
    const clientSecret = await cell('connection_clients', { id: client.id }, 'client_secret')
    const [now, old] = [
      await cell('webhooks', { id: webhook.id }, 'secret'),
      await cell('webhooks', { id: webhook.id }, 'old_secret'),
    ]
    const hook = { id: webhook.id, secret: now, oldSecret: old, oldSecretUntil: at + 1 }
    expect(signingSecrets(by, hook, at)).toEqual([secret, secret])
    expect(
      openAttempt(by, connectionId, await cell('connection_sign_ins', { state_hash: stateHash }, 'attempt')),
    ).toEqual(begun)
    return [
      by.open(secretId, await cell('secrets', { id: secretId }, 'sealed')),
      openCredential(by, connectionId, await cell('connections', { id: connectionId }, 'credential')),
      openCredential(by, connectionId, await cell('connection_withdrawals', { id: withdrawal.id }, 'credential')),
      openClientSecret(by, { ...client, clientSecret }),
    ]
  }
}

const all = ['a value', held, held, 'a value']

onBoth('whatever is sealed is sealed anew, and then needs the new key alone', async ({ root }) => {
  const old = vaultOf(first)
  await claimSecretsKey(root, old, at)
  const open = await sealedWith(root, old)
  const both = vaultOf(second, first)
  expect(await open(both)).toEqual(all)
  expect(await readKeysState(root, both)).toMatchObject({ left: 7, unreadable: 0 })
  expect(await readKeysState(root, vaultOf(second))).toMatchObject({ left: 0, unreadable: 7 })
  const { columns } = await readKeysState(root, vaultOf(second))
  expect(columns.find(({ column }) => column === 'secrets.sealed')!.unreadable).toEqual([
    expect.stringMatching(/^sec_/),
  ])

  expect(await rotateKeys(root, both)).toMatchObject({ sealedAnew: 7, left: 0, unreadable: 0 })
  expect(await open(vaultOf(second))).toEqual(all)
  await expect(open(old)).rejects.toThrow('another key')
  // A second time there is nothing to do.
  expect(await rotateKeys(root, both)).toMatchObject({ sealedAnew: 0, left: 0, unreadable: 0 })
  // Only a server with the new key starts.
  await checkKey(root, vaultOf(second))
  await expect(checkKey(root, old)).rejects.toThrow('another key')
})

onBoth('a rotation that dies in the middle leaves all readable, and the next one goes on with it', async ({ root }) => {
  const open = await sealedWith(root, vaultOf(first))
  const both = vaultOf(second, first)
  let sealed = 0
  const dying: Vault = {
    ...both,
    seal(id, value) {
      if (++sealed > 3) throw new Error('killed')
      return both.seal(id, value)
    },
  }
  await expect(rotateKeys(root, dying)).rejects.toThrow('killed')
  const { left } = await readKeysState(root, both)
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(7)
  expect(await open(both)).toEqual(all)
  // A server that seals with the old key still, and has the new one to open with, reads all as well.
  expect(await open(vaultOf(first, second))).toEqual(all)
  expect(await rotateKeys(root, both)).toMatchObject({ sealedAnew: left, left: 0 })
})

onBoth('two rotations at once seal each value once, and one that was changed meanwhile is kept', async ({ root }) => {
  const open = await sealedWith(root, vaultOf(first))
  const both = vaultOf(second, first)
  const ends = await Promise.all([rotateKeys(root, both), rotateKeys(root, both)])
  expect(ends.reduce((sum, { sealedAnew }) => sum + sealedAnew, 0)).toBe(7)
  expect(await open(vaultOf(second))).toEqual(all)
  const [column] = sealedColumns
  const [read] = await listSealed(root, column!, { after: '', limit: 9 })
  expect(await listSealed(root, column!, { after: read!.key, limit: 9 })).toEqual([])
  const changed = both.seal(read!.key, 'another value')
  expect(await replaceSealed(root, column!, read!, changed)).toBe(true)
  expect(await replaceSealed(root, column!, read!, read!.sealed)).toBe(false)
})

onBoth('servers of both steps of a change of the key work side by side', async ({ root }) => {
  const [before, ready, changed] = [vaultOf(first), vaultOf(first, second), vaultOf(second, first)]
  await claimSecretsKey(root, before, at)
  await checkKey(root, ready)
  await checkKey(root, changed)
  for (const vault of [ready, changed]) await claimSecretsKey(root, vault, at)
  for (const [one, other] of [
    [ready, changed],
    [changed, ready],
  ] as const)
    expect(other.open('sec_1', one.seal('sec_1', 'value'))).toBe('value')
  // One that was left out of it is refused once another one seals with the new key.
  await expect(checkKey(root, before)).rejects.toThrow('another key')
  await expect(claimSecretsKey(root, before, at)).rejects.toThrow('another key')
  await checkKey(root, ready)
  await checkKey(root, changed)
  await checkKey(root, vaultOf(second))
})

onBoth('a rotation asks for both keys, and a wrong one opens nothing', async ({ root }) => {
  await claimSecretsKey(root, vaultOf(first), at)
  await expect(rotateKeys(root, vaultOf(second))).rejects.toThrow('SVC_SECRETS_OTHER_KEY')
  await expect(rotateKeys(root, createVault({ kind: 'memory', other: first }, realWorld))).rejects.toThrow(
    'SVC_SECRETS_KEY',
  )
  await expect(rotateKeys(root, vaultOf(second, 'ef'.repeat(32)))).rejects.toThrow('another key')
  expect(() => vaultOf(second, 'nonsense')).toThrow('32 bytes')
})

onBoth('a key of the server is replaced where it is as it was read', async ({ root }) => {
  await serverKey(root, 'k', { value: 'a', at })
  await replaceServerKey(root, 'k', { before: 'b', after: 'c' })
  expect(await findServerKey(root, 'k')).toBe('a')
  await replaceServerKey(root, 'k', { before: 'a', after: 'c' })
  expect(await findServerKey(root, 'k')).toBe('c')
})
