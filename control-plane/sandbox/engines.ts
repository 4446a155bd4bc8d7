import type { SandboxId } from '../../shared/lib/ids.ts'
import { readFileSync } from 'node:fs'
import { ConfigError } from '../process/config-error.ts'
import { FolderBrokers, type BrokerPlaces, type BrokersOptions } from './broker/brokers.ts'
import { PortBrokers } from './broker/port-brokers.ts'
import { DockerEngine } from './docker/engine.ts'
import type { SandboxEngine } from './engine.ts'
import { KubernetesEngine } from './kubernetes/engine.ts'

/** The engines that there are, by the settings of the operator. */
export type EngineSettings =
  | { kind: 'docker'; socket: string }
  | {
      kind: 'kubernetes'
      url: URL
      tokenFile: string
      caFile: string
      namespace: string
      /** The storage class of the volumes; null: the cluster's usual one. */
      storageClass: string | null
      /** The address at which sandboxes find their brokers. */
      broker: { host: string; port: number }
    }

/** A call that takes longer is given up. */
const timeoutMs = 20_000

export function createEngine(settings: EngineSettings): SandboxEngine {
  if (settings.kind === 'docker') return new DockerEngine({ ...settings, timeoutMs })
  for (const [variable, file] of [
    ['SVC_SANDBOX_CLUSTER_TOKEN_FILE', settings.tokenFile],
    ['SVC_SANDBOX_CLUSTER_CA_FILE', settings.caFile],
  ] as const) {
    try {
      readFileSync(file)
    } catch (error) {
      const why = (error as Error).message
      throw new ConfigError(
        `The cluster of the sandboxes cannot be asked: ${why}. Run the server in the cluster, or name a file by ${variable}.`,
      )
    }
  }
  return new KubernetesEngine({ ...settings, timeoutMs })
}

/** `folder`: where those of sandboxes on this machine are. */
export function createBrokers(
  settings: EngineSettings,
  { folder, keyOf, ...options }: BrokersOptions & { folder: string; keyOf: (sandboxId: SandboxId) => string },
): BrokerPlaces {
  if (settings.kind === 'kubernetes') return new PortBrokers({ ...options, ...settings.broker, keyOf })
  const trouble = FolderBrokers.troubleOf(folder)
  if (trouble !== null) throw new ConfigError(trouble)
  return new FolderBrokers({ ...options, folder })
}
