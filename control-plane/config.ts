import type { EngineSettings } from './sandbox/engines.ts'
import { join, resolve } from 'node:path'
import envPaths from 'env-paths'
import { dataFiles } from '../shared/lib/places.ts'
import { isSamePlace, readLocation, type BlobLocation } from './blobs/location.ts'
import { dialectOf } from './db/dialect.ts'
import { ConfigError } from './process/config-error.ts'
import type { SmtpSettings } from './mailer/mailer.ts'
import type { GithubSettings } from './github/settings.ts'
import { endpointOf, type EmbeddingSettings } from './search/embeddings/settings.ts'
import { isOnThisMachine } from './settings/addresses.ts'
import { contradictionsIn } from './settings/contradictions.ts'
import { refusal, refusalsOf, shown, type SettingSources } from './settings/refusals.ts'
import { unknownNamesIn } from './settings/unknown-names.ts'
import { environment, variableNames, type Settings, type VariableName } from './settings/variables.ts'
import type { OidcSettings } from './sign-in/oidc/client.ts'

// The only reader of the environment: `settings/` says what each variable must be. Settings that cannot be used stop the start
// with a sentence for each.

export type ServerConfig = ReturnType<typeof readConfig>

export interface ServerFlags {
  host?: string | undefined
  /** The port as it was typed. */
  port?: string | number | undefined
  dataDir?: string | undefined
  databaseUrl?: string | undefined
}

/** The configuration of the operator's commands: no command touches the bytes of files, so none needs the keys of their bucket. */
export type OperatorConfig = ReturnType<typeof readOperatorConfig>

type Environment = Readonly<Record<string, string | undefined>>

export function readConfig(env: Environment, flags: ServerFlags) {
  const { config, settings, given } = read(env, flags)
  return {
    ...config,
    /** The place where the bytes of files are kept. */
    files: filesOf(settings, config.dataDir, given),
    /** Where files are looked for that are not there, while they move; null: nowhere. */
    otherFiles: otherFilesOf(settings, config.dataDir, given),
  }
}

export function readOperatorConfig(env: Environment, flags: ServerFlags) {
  return read(env, flags).config
}

const flagOf: { readonly [Flag in keyof ServerFlags]-?: readonly [VariableName, string] } = {
  host: ['SVC_HOST', '--host'],
  port: ['SVC_PORT', '--port'],
  dataDir: ['SVC_DATA_DIR', '--data-dir'],
  databaseUrl: ['SVC_DATABASE_URL', '--database-url'],
}

function settingSources(env: Environment, flags: ServerFlags): SettingSources {
  const set = Object.entries(flagOf).flatMap(([key, [name, flag]]) => {
    const value = flags[key as keyof ServerFlags]
    return value === undefined ? [] : [{ name, flag, value }]
  })
  const values: SettingSources['values'] = {
    ...Object.fromEntries(variableNames.map((name) => [name, env[name]])),
    ...Object.fromEntries(set.map(({ name, value }) => [name, value])),
  }
  return { values, flags: Object.fromEntries(set.map(({ name, flag }) => [name, flag])) }
}

function read(env: Environment, flags: ServerFlags) {
  const given = settingSources(env, flags)
  const parsed = environment.safeParse(given.values)
  if (!parsed.success) throw unusable(refusalsOf(parsed.error.issues, given))
  const settings = parsed.data
  const contradictions = contradictionsIn(settings, (name) => given.values[name] !== undefined)
  if (contradictions.length > 0) throw unusable(contradictions)
  return { config: { ...configOf(settings), unknownNames: unknownNamesIn(env) }, settings, given }
}

const unusable = (sentences: readonly string[]) =>
  new ConfigError(['The configuration cannot be used.', ...sentences].join('\n'))

/** A drain of SQLite does not wait: no other replica can be there, so nobody can go elsewhere. */
const defaultDrainMs = { postgres: 5_000, sqlite: 0 } as const

function configOf(value: Settings) {
  const dataDir = value.SVC_DATA_DIR ?? envPaths('svc', { suffix: '' }).data
  const databaseUrl = value.SVC_DATABASE_URL ?? join(dataDir, 'svc.db')
  return {
    host: value.SVC_HOST,
    port: value.SVC_PORT,
    dataDir,
    /** `postgres://...` or the path of the SQLite file. */
    databaseUrl,
    databasePool: value.SVC_DATABASE_POOL,
    /** PostgreSQL ends reads and writes that take longer. */
    readMs: value.SVC_READ_TIMEOUT_MS,
    writeMs: value.SVC_WRITE_TIMEOUT_MS,
    publicUrl: value.SVC_PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    /** The number of proxies before the server, each of which adds to X-Forwarded-For. */
    trustedProxies: value.SVC_TRUSTED_PROXIES,
    /** Hosts that may be private and without TLS, where people name an address that this server asks. */
    allowHosts: value.SVC_ALLOW_HOSTS ?? [],
    /** The token that lets its holder read `/metrics` from elsewhere; null: admins alone. */
    metricsToken: value.SVC_METRICS_TOKEN ?? null,
    /** A file with models that the operator adds to the catalog. */
    modelsFile: value.SVC_MODELS_FILE ?? null,
    /** A file with services that the operator adds to the catalog, and with OAuth clients. */
    servicesFile: value.SVC_SERVICES_FILE ?? null,
    /** The issuer where people sign in; null: people sign in by one-time links only. */
    oidc: oidcOf(value),
    github: githubOf(value),
    /** The key that encrypts the values of secrets; null: a key file in the data folder. */
    secretsKey: value.SVC_SECRETS_KEY ?? null,
    /** A key that opens what was sealed with it, and seals nothing; null: there is none. */
    otherSecretsKey: value.SVC_SECRETS_OTHER_KEY ?? null,
    /** Services whose secrets agents may ask for; null: any. */
    secretProviders: value.SVC_SECRET_PROVIDERS ?? null,
    /** This server runs the programs of workflows. */
    runsWorkflows: value.SVC_WORKFLOWS === 'on',
    /** A folder of programs that the operator gives to all workspaces. */
    workflowCatalogDir: value.SVC_WORKFLOW_CATALOG_DIR ?? null,
    sandbox: sandboxOf(value),
    /** The server by which people get mail; null: they get none. */
    smtp: smtpOf(value),
    /** The model that says what texts are about; null: texts are found by their words alone. */
    embeddings: embeddingsOf(value),
    /** For how long what is old is kept; null: for good. */
    keep: {
      runsMs: daysToMs(value.SVC_KEEP_RUNS_DAYS),
      historyMs: daysToMs(value.SVC_KEEP_TASK_HISTORY_DAYS),
      versionsMs: daysToMs(value.SVC_KEEP_FILE_VERSIONS_DAYS),
    },
    logLevel: value.SVC_LOG_LEVEL,
    requestsPerMinute: value.SVC_RATE_LIMIT_PER_MINUTE,
    /** Parses replies by their schemas; a reply or code that the contract does not name is a failure. */
    checkReplies: value.SVC_CHECK_REPLIES,
    heartbeatMs: value.SVC_HEARTBEAT_MS,
    leaseMs: value.SVC_LEASE_MS,
    offerMs: value.SVC_OFFER_MS,
    dispatchMs: value.SVC_DISPATCH_TIMEOUT_MS,
    gateMs: value.SVC_GATE_TIMEOUT_MS,
    runnerLostMs: value.SVC_RUNNER_LOST_MS,
    sweepMs: value.SVC_SWEEP_MS,
    /** The time between telling that this replica stops and closing its port. */
    drainMs: value.SVC_DRAIN_MS ?? defaultDrainMs[dialectOf(databaseUrl)],
    /** The time that a session lasts, in total and unused. */
    sessions: {
      totalMs: value.SVC_SESSION_MS,
      // The default is longer than a short session.
      idleMs: Math.min(value.SVC_SESSION_IDLE_MS, value.SVC_SESSION_MS),
    },
    /** A login token ends after this long without a use; null: never. */
    tokenIdleMs: value.SVC_TOKEN_IDLE_MS ?? null,
    streamCheckMs: value.SVC_STREAM_CHECK_MS,
    pingMs: value.SVC_PING_MS,
    deadMs: value.SVC_DEAD_MS,
    runLimits: {
      runMs: value.SVC_RUN_TIMEOUT_MS,
      noProgressMs: value.SVC_NO_PROGRESS_MS,
      firstEventMs: value.SVC_FIRST_EVENT_MS,
      silentMs: value.SVC_RUNNER_LOST_MS,
    },
  }
}

const daysToMs = (days: number | undefined): number | null => (days === undefined ? null : days * 86_400_000)

/** A folder beside the database, unless another folder or a bucket is named. */
function filesOf(value: Settings, dataDir: string, given: SettingSources): BlobLocation {
  const url = value.SVC_FILES_URL
  return url === undefined
    ? { kind: 'disk', folder: resolve(dataDir, dataFiles.files) }
    : locationOf('SVC_FILES_URL', url, { value, given })
}

function otherFilesOf(value: Settings, dataDir: string, given: SettingSources): BlobLocation | null {
  const url = value.SVC_FILES_OTHER_URL
  if (url === undefined) return null
  const other = locationOf('SVC_FILES_OTHER_URL', url, { value, given })
  if (isSamePlace(other, filesOf(value, dataDir, given)))
    throw unusable([refusal('SVC_FILES_OTHER_URL', 'another place than that of SVC_FILES_URL', given)])
  return other
}

function locationOf(
  name: 'SVC_FILES_URL' | 'SVC_FILES_OTHER_URL',
  url: string,
  { value, given }: { value: Settings; given: SettingSources },
): BlobLocation {
  const keys = { keyId: value.AWS_ACCESS_KEY_ID, secret: value.AWS_SECRET_ACCESS_KEY }
  const location = readLocation(url, keys)
  if (typeof location === 'string')
    throw unusable([
      `${name} ${location}; it is ${shown(url)}. Example: ${name}=s3://bucket/prefix?endpoint=https://s3.example.com`,
    ])
  if (location.kind === 's3' && isInTheClear(location.endpoint))
    throw unusable([refusal(name, 'with an endpoint that begins with https://, unless it is on this machine', given)])
  return location
}

/** `contradictionsIn` has seen that the others are set with it, here and below. */
function embeddingsOf(value: Settings): EmbeddingSettings | null {
  const { SVC_EMBEDDINGS_URL: url, SVC_EMBEDDINGS_KEY: key, SVC_EMBEDDINGS_MODEL: model } = value
  return url === undefined || model === undefined ? null : { url: endpointOf(url), key: key ?? null, model }
}

/** `contradictionsIn` has seen that a cluster has what it needs. */
function engineOf(value: Settings, kind: 'docker' | 'kubernetes'): EngineSettings {
  if (kind === 'docker') return { kind, socket: value.SVC_SANDBOX_SOCKET ?? '/var/run/docker.sock' }
  const account = '/var/run/secrets/kubernetes.io/serviceaccount'
  return {
    kind,
    url: new URL(value.SVC_SANDBOX_CLUSTER_URL ?? 'https://kubernetes.default.svc'),
    tokenFile: value.SVC_SANDBOX_CLUSTER_TOKEN_FILE ?? `${account}/token`,
    caFile: value.SVC_SANDBOX_CLUSTER_CA_FILE ?? `${account}/ca.crt`,
    namespace: value.SVC_SANDBOX_NAMESPACE ?? '',
    storageClass: value.SVC_SANDBOX_STORAGE_CLASS ?? null,
    broker: { host: value.SVC_SANDBOX_BROKER_HOST ?? '', port: value.SVC_SANDBOX_BROKER_PORT },
  }
}

/** The engine that runs sandboxes; null: there are no cloud runs. */
function sandboxOf(value: Settings) {
  if (value.SVC_SANDBOX === 'none') return null
  return {
    engine: engineOf(value, value.SVC_SANDBOX),
    image: value.SVC_SANDBOX_IMAGE ?? 'svc-sandbox',
    /** The runtime with which the engine starts containers; null: its usual one. */
    runtime: value.SVC_SANDBOX_RUNTIME ?? null,
    /**
     * The addresses at which models are asked, and the keys with which the operator pays for those who have none; null: nobody is paid for.
     */
    models: {
      anthropic: {
        url: value.SVC_SANDBOX_ANTHROPIC_URL ?? 'https://api.anthropic.com',
        key: value.SVC_SANDBOX_ANTHROPIC_KEY ?? null,
      },
      openai: {
        url: value.SVC_SANDBOX_OPENAI_URL ?? 'https://api.openai.com',
        key: value.SVC_SANDBOX_OPENAI_KEY ?? null,
      },
    },
    sizes: { small: value.SVC_SANDBOX_SMALL, medium: value.SVC_SANDBOX_MEDIUM, large: value.SVC_SANDBOX_LARGE },
    /** Sandboxes at once, in all and of one workspace. */
    most: value.SVC_SANDBOX_MAX,
    /** Containers that are made ahead of their runs. */
    warm: value.SVC_SANDBOX_WARM,
    mostOfWorkspace: Math.min(value.SVC_SANDBOX_MAX_PER_WORKSPACE ?? value.SVC_SANDBOX_MAX, value.SVC_SANDBOX_MAX),
  }
}

function oidcOf(value: Settings): OidcSettings | null {
  const { SVC_OIDC_ISSUER: issuer, SVC_OIDC_CLIENT_ID: clientId, SVC_OIDC_CLIENT_SECRET: clientSecret } = value
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return null
  return { issuer, clientId, clientSecret }
}

function smtpOf({ SVC_SMTP_URL: url, SVC_MAIL_FROM: from }: Settings): SmtpSettings | null {
  return url === undefined || from === undefined ? null : { url, from }
}

/** A token, or a GitHub App with its key; both are used with the secret of the webhook. */
function githubOf(value: Settings): GithubSettings {
  const { SVC_GITHUB_TOKEN: token, SVC_GITHUB_APP_ID: appId, SVC_GITHUB_APP_KEY_FILE: keyFile } = value
  const apiUrl = value.SVC_GITHUB_API_URL.replace(/\/+$/, '')
  const app = appId === undefined || keyFile === undefined ? null : ({ kind: 'app', appId, keyFile } as const)
  const auth = token === undefined ? app : ({ kind: 'token', token } as const)
  return { apiUrl, auth, webhookSecret: value.SVC_GITHUB_WEBHOOK_SECRET ?? null }
}

/** The settings that handlers go by. */
export const settingsOfHandlers = ({
  heartbeatMs,
  leaseMs,
  secretProviders,
  gateMs,
  dispatchMs,
  runnerLostMs,
}: Pick<ServerConfig, 'heartbeatMs' | 'leaseMs' | 'secretProviders' | 'gateMs' | 'dispatchMs' | 'runnerLostMs'>) => ({
  heartbeatMs,
  leaseMs,
  secretProviders,
  waits: { gateMs, dispatchMs, runnerLostMs },
})

function isInTheClear(endpoint: string): boolean {
  const url = new URL(endpoint)
  return url.protocol === 'http:' && !isOnThisMachine(url)
}
