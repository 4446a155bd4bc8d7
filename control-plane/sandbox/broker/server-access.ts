import type { ConnectionId } from '../../../shared/lib/ids.ts'
import { filledServers, goesThroughBroker, serverVariables } from '../../../shared/runs/filled-servers.ts'
import type { SecretValue } from '../../../shared/lib/redact.ts'
import { hostOf } from '../../outbound/host-name.ts'
import { placeOfServer, whyNotInCloud, type RemoteServer } from '../../resources/mcp-servers/in-cloud.ts'
import type { SecretRow } from '../../resources/secrets/store.ts'
import { ConnectionUnusable } from '../../resources/connections/for-runs.ts'
import {
  adviceFor,
  credentialForServers,
  mustServeServers,
  type SpecOwner,
} from '../../resources/connections/for-specs.ts'
import type { RenewalDependencies } from '../../resources/connections/renewal.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'
import { listCloudSecrets, type BrokeredSecret } from '../../resources/secrets/in-cloud.ts'
import { VaultError } from '../../vault/vault.ts'
import { ForwardRefusal } from './forward.ts'

/** An MCP server on the network that a run may ask through its broker. */
export interface ServerPermit {
  name: string
  /** The host of its address; null: it is not known, and the server is not asked. */
  host: string | null
  isSse: boolean
  hasConnection: boolean
  /** An admin lets agents have its skills. */
  trustsSkills: boolean
  /**
   * Resolves with what the server is sent now. `refused`: the version of the credential that it did not take. Fails with ServerUnusable.
   */
  sent(refused?: number | null): Promise<SentToServer>
  /** Resolves with the reason for which the server may not be asked any more; null: it may. Nothing is renewed for that. */
  whyNot(): Promise<string | null>
}

export interface SentToServer {
  url: URL
  headers: Readonly<Record<string, string>>
  /** Values that must not come back in an answer. */
  secrets: readonly SecretValue[]
  /** The version of its connection's credential; null: the server has no connection. */
  version: number | null
}

/** The message is for the model and for people, and holds no value. It goes on from the name of the server. */
export class ServerUnusable extends ForwardRefusal {
  override name = 'ServerUnusable'
}

/** The MCP servers that a live run may ask through its broker. */
export const serverPermits = (
  deps: RenewalDependencies,
  of: SpecOwner & { run: RunRow; variables: readonly BrokeredSecret[] },
): ServerPermit[] =>
  Object.entries(of.spec.mcpServers).flatMap(([name, server]) =>
    goesThroughBroker(server) ? [permitOf(deps, { ...of, name, server })] : [],
  )

/** `variables`: of connections, that the run has. */
type Of = SpecOwner & { name: string; server: RemoteServer; run: RunRow; variables: readonly BrokeredSecret[] }

function permitOf(deps: RenewalDependencies, of: Of): ServerPermit {
  const { name, server } = of
  // A permit is good for a second, in which a credential is looked up once, however often the sandbox asks.
  const looked = new Map<number | null, Promise<SentToServer>>()
  const sentOnce = (refused: number | null) => {
    const known = looked.get(refused)
    if (known !== undefined) return known
    const looking = lookUp(deps, of, refused)
    looked.set(refused, looking)
    // The credential that was looked up after the refusal is sent with other requests, too.
    looked.set(null, looking)
    return looking
  }
  return {
    name,
    host: placeOfServer(server) === null ? null : hostOf(new URL(server.url)),
    isSse: server.type === 'sse',
    hasConnection: server.connectionId !== undefined,
    trustsSkills: server.trustSkills === true,
    sent: (refused = null) => sentOnce(refused),
    async whyNot() {
      const why = await whyNot(deps, of)
      // A credential that was looked up before is not sent any more, either.
      if (why !== null) looked.clear()
      return why
    },
  }
}

async function lookUp(deps: RenewalDependencies, of: Of, refused: number | null): Promise<SentToServer> {
  const { connectionId } = of.server
  const own = await filled(deps, of)
  if (connectionId === undefined) {
    await mustGoOn(deps, of)
    return { ...own, version: null }
  }
  const { headers, values, credentialVersion } = await usable(connectionId, () =>
    credentialForServers(deps, of, { connectionId, refused }),
  )
  await mustGoOn(deps, of)
  const secrets = [...own.secrets, ...values.map((value) => ({ name: connectionId, value }))]
  return { url: own.url, headers: { ...own.headers, ...named(headers) }, secrets, version: credentialVersion }
}

async function whyNot(deps: RenewalDependencies, of: Of): Promise<string | null> {
  const { connectionId } = of.server
  try {
    await mustGoOn(deps, of)
    await filled(deps, of)
    if (connectionId !== undefined) await usable(connectionId, () => mustServeServers(deps, of, connectionId))
    return null
  } catch (error) {
    if (error instanceof ServerUnusable) return error.message
    throw error
  }
}

async function mustGoOn({ root }: Pick<RenewalDependencies, 'root'>, { run }: Of): Promise<void> {
  const now = await findRun(root, run.id)
  if (now === null || now.endedAt !== null) throw new ServerUnusable('the run is over')
}

const usable = <T>(connectionId: ConnectionId, asking: () => Promise<T>): Promise<T> =>
  told(asking, (error) => {
    const why = adviceFor(error, connectionId)
    return `svc has no credential for it by the connection ${connectionId}: ${why}`
  })

async function told<T>(asking: () => Promise<T>, sentence: (error: ConnectionUnusable) => string): Promise<T> {
  try {
    return await asking()
  } catch (error) {
    if (error instanceof VaultError) throw new ServerUnusable('svc cannot open the credential of a connection')
    if (error instanceof ConnectionUnusable) throw new ServerUnusable(sentence(error))
    throw error
  }
}

/**
 * Resolves with the server's address and its own headers, with the agent's secrets of now, and with values of connections that the run
 * has.
 */
async function filled(
  deps: Pick<RenewalDependencies, 'root' | 'vault'>,
  { name, server, run, variables }: Of,
): Promise<Omit<SentToServer, 'version'>> {
  const names = new Set(serverVariables(server))
  const all = names.size === 0 ? [] : await listCloudSecrets(deps.root, run.agentRef)
  const own = all.filter(({ envVarName }) => names.has(envVarName))
  const why = whyNotInCloud(server, own)
  if (why !== null) throw new ServerUnusable(why)
  const secrets = [
    ...own.map((secret) => ({ name: secret.envVarName, value: opened(deps.vault, secret) })),
    ...(await valuesOf(
      variables.filter((variable) => names.has(variable.name)),
      placeOfServer(server)!,
    )),
  ]
  const env = Object.fromEntries(secrets.map(({ name: variable, value }) => [variable, value]))
  const { servers, leftOut } = filledServers({ [name]: server }, env)
  const made = servers[name]
  const url = made === undefined || made.type === 'stdio' ? null : URL.parse(made.url)
  if (
    made === undefined ||
    made.type === 'stdio' ||
    url === null ||
    placeOfServer({ url: url.href }) !== placeOfServer(server)
  )
    throw new ServerUnusable(leftOut[0]?.why ?? 'its address is none')
  url.hash = ''
  return { url, headers: named(made.headers ?? {}), secrets }
}

function opened(vault: RenewalDependencies['vault'], { id, envVarName, sealed }: SecretRow): string {
  try {
    return vault.open(id, sealed)
  } catch (error) {
    if (!(error instanceof VaultError)) throw error
    throw new ServerUnusable(`svc cannot open the secret in ${envVarName}`)
  }
}

/** The values of variables of connections. */
async function valuesOf(variables: readonly BrokeredSecret[], place: string): Promise<SecretValue[]> {
  const elsewhere = variables.find(({ hosts }) => !hosts.has(place))
  if (elsewhere !== undefined)
    throw new ServerUnusable(`the connection that gives ${elsewhere.name} is not for ${place}`)
  const values = variables.map(async ({ name, renewed }) => ({
    name,
    value: await told(
      () => renewed!(),
      ({ message }) => `${name} has no value: ${message}`,
    ),
  }))
  return (await Promise.all(values)).flatMap(({ name, value }) => (value === null ? [] : [{ name, value }]))
}

/** Headers that belong to one connection of the network, which is the broker's, or that lead a request to another server. */
const ofConnection =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-length|accept-encoding)$/

const named = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => !ofConnection.test(name)),
  )
