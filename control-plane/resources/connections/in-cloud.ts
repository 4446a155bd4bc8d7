import { connectionVariablesOf, type VariableLeftOut } from '../../../shared/runs/connection-variables.ts'
import type { Service } from '../../catalog/services.ts'
import { hostWithPort, readHost } from '../../outbound/host-name.ts'
import type { RunRow } from '../runs/store.ts'
import { brokeredValue, placeholdersOfVariables, type BrokeredSecret } from '../secrets/in-cloud.ts'
import { connectionsOfAgent, agentConnectionVariables, type AgentConnection } from './agent-connections.ts'
import { variablesForRun, type SpecOwner } from './for-specs.ts'
import type { RenewalDependencies } from './renewal.ts'

// Variables of connections in a sandbox: placeholders, which the broker replaces towards the hosts of their service.

/** Returns the hosts to which the variables of a service may be sent, with a port where that is not 443. */
export function hostsOf({ hosts, probe, mcp }: Pick<Service, 'hosts' | 'probe' | 'mcp'>): ReadonlySet<string> {
  if (hosts !== undefined) return new Set(hosts.map((host) => host.replace(/:443$/, '')))
  const urls = [probe?.url, mcp?.url].flatMap((text) => (text === undefined ? [] : (URL.parse(text) ?? [])))
  const named = urls.filter(({ protocol, hostname }) => protocol === 'https:' && readHost(hostname) !== null)
  return new Set(named.map(hostWithPort))
}

/** Does for a run in a sandbox what `agentConnectionVariables` does for one on a device. */
export function variablesInCloud(
  given: readonly AgentConnection[],
  taken: Parameters<typeof agentConnectionVariables>[1],
): ReturnType<typeof agentConnectionVariables> {
  const reaching = new Set(given.filter(({ service }) => hostsOf(service).size > 0).map(({ row }) => row.id))
  const { variables, leftOut } = agentConnectionVariables(given, taken)
  const hostless = variables.filter(({ connectionId }) => !reaching.has(connectionId))
  return {
    variables: variables.filter(({ connectionId }) => reaching.has(connectionId)),
    leftOut: [
      ...leftOut,
      ...hostless.flatMap(({ names }) => names.map((name): VariableLeftOut => ({ name, reason: 'no_hosts' }))),
    ],
  }
}

/** Lists the variables that a live run has of connections, as far as its agent is given these now. */
export async function listBrokeredVariables(
  deps: RenewalDependencies,
  { run, ...of }: SpecOwner & { run: Pick<RunRow, 'id'> },
): Promise<BrokeredSecret[]> {
  const { root, services, world } = deps
  const wanted = of.spec.connectionVariables ?? []
  if (wanted.length === 0) return []
  const { given } = await connectionsOfAgent(root, of.agent, { services, now: world.now() })
  const placeholders = await placeholdersOfVariables(root, { run, names: connectionVariablesOf(of.spec), world })
  return wanted.flatMap(({ connectionId, names }) => {
    const service = given.find(({ row }) => row.id === connectionId)?.service
    if (service === undefined) return []
    // A permit is good for a second, in which a value is looked up once, however often the sandbox asks.
    let looking: ReturnType<typeof variablesForRun> | null = null
    const valueOf = async (name: string) => {
      const { env } = await (looking ??= variablesForRun(deps, of, connectionId))
      return env[name] === undefined ? null : brokeredValue(env[name])
    }
    const hosts = hostsOf(service)
    return names.map((name) => ({
      name,
      placeholder: placeholders.get(name)!,
      value: null,
      renewed: () => valueOf(name),
      hosts,
    }))
  })
}
