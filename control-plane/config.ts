import { isIPv4 } from 'node:net'
import { join, resolve } from 'node:path'
import envPaths from 'env-paths'
import { z } from 'zod'
import { dataFiles } from '../shared/lib/places.ts'
import { linkLimits, runLimits } from '../shared/device/limits.ts'
import { readLocation, type BlobLocation } from './blobs/location.ts'
import { defaultReadMs, defaultWriteMs } from './db/open.ts'
import { ConfigError } from './process/config-error.ts'
import type { GithubSettings } from './github/settings.ts'
import { parseKey } from './vault/vault.ts'
import { endpointOf, type EmbeddingSettings } from './search/embeddings/settings.ts'
import type { OidcSettings } from './sign-in/oidc/client.ts'

/**
 * The only reader of the environment. Ignores unknown `SVC_*` variables; a bad value stops the start with a sentence.
 */

const milliseconds = (fallback: number) =>
  z.coerce
    .number()
    .int()
    .min(1)
    .max(30 * 86_400_000)
    .default(fallback)
const flag = z
  .enum(['0', '1', 'true', 'false'])
  .default('0')
  .transform((value) => value === '1' || value === 'true')

const environment = z.object({
  SVC_HOST: z.string().min(1).default('127.0.0.1'),
  SVC_PORT: z
    .union([z.number(), z.string().regex(/^\d+$/, 'must be a number')], 'must be a number')
    .pipe(z.coerce.number<string | number>().int().min(0).max(65_535))
    .default(4400),
  SVC_DATA_DIR: z.string().min(1).optional(),
  SVC_DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must begin with postgres://')
    .optional(),
  SVC_DATABASE_POOL: z.coerce.number().int().min(1).max(200).default(8),
  SVC_READ_TIMEOUT_MS: milliseconds(defaultReadMs),
  SVC_WRITE_TIMEOUT_MS: milliseconds(defaultWriteMs),
  SVC_PUBLIC_URL: z.url().optional(),
  SVC_TRUSTED_PROXIES: z.coerce.number().int().min(0).max(10).default(0),
  SVC_MODELS_FILE: z.string().min(1).optional(),
  SVC_OIDC_ISSUER: z.url({ protocol: /^https?$/ }).optional(),
  SVC_OIDC_CLIENT_ID: z.string().min(1).max(500).optional(),
  SVC_OIDC_CLIENT_SECRET: z.string().min(1).max(2000).optional(),
  SVC_GITHUB_API_URL: z.url({ protocol: /^https?$/ }).default('https://api.github.com'),
  SVC_GITHUB_TOKEN: z
    .string()
    .regex(/^[!-~]{1,500}$/, 'must be a token')
    .optional(),
  SVC_GITHUB_APP_ID: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,100}$/)
    .optional(),
  SVC_GITHUB_APP_KEY_FILE: z.string().min(1).optional(),
  SVC_GITHUB_WEBHOOK_SECRET: z.string().min(8, 'at least 8 characters').max(1000).optional(),
  SVC_SECRETS_KEY: z
    .string()
    .refine((text) => parseKey(text) !== null, 'must be 32 bytes as hex or base64')
    .optional(),
  SVC_SECRET_PROVIDERS: z.string().max(10_000).optional(),
  SVC_WORKFLOWS: z.enum(['on', 'off']).default('on'),
  SVC_WORKFLOW_CATALOG_DIR: z.string().min(1).optional(),
  SVC_EMBEDDINGS_URL: z.url({ protocol: /^https?$/ }).optional(),
  SVC_EMBEDDINGS_KEY: z
    .string()
    .regex(/^[!-~]{1,1000}$/, 'must be a key')
    .optional(),
  SVC_EMBEDDINGS_MODEL: z.string().min(1).max(200).optional(),
  SVC_FILES_URL: z.string().min(1).max(2000).optional(),
  AWS_ACCESS_KEY_ID: z.string().min(1).max(500).optional(),
  AWS_SECRET_ACCESS_KEY: z.string().min(1).max(500).optional(),
  SVC_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  SVC_RATE_LIMIT_PER_MINUTE: z.coerce.number().int().min(1).default(600_000),
  SVC_CHECK_REPLIES: flag,
  SVC_HEARTBEAT_MS: milliseconds(linkLimits.heartbeatMs),
  SVC_LEASE_MS: milliseconds(linkLimits.leaseMs),
  SVC_OFFER_MS: milliseconds(linkLimits.offerMs),
  SVC_DISPATCH_TIMEOUT_MS: milliseconds(runLimits.dispatchMs),
  SVC_GATE_TIMEOUT_MS: milliseconds(runLimits.gateMs),
  SVC_RUNNER_LOST_MS: milliseconds(runLimits.silentMs),
  SVC_RUN_TIMEOUT_MS: milliseconds(runLimits.runMs),
  SVC_NO_PROGRESS_MS: milliseconds(runLimits.noProgressMs),
  SVC_FIRST_EVENT_MS: milliseconds(runLimits.firstEventMs),
  SVC_SWEEP_MS: milliseconds(15_000),
  SVC_SESSION_MS: milliseconds(7 * 86_400_000),
  SVC_SESSION_IDLE_MS: milliseconds(3 * 86_400_000),
  SVC_TOKEN_IDLE_MS: z.coerce.number().int().min(60_000).optional(),
  SVC_STREAM_CHECK_MS: milliseconds(10_000),
  SVC_PING_MS: milliseconds(linkLimits.pingMs),
  SVC_DEAD_MS: milliseconds(linkLimits.deadMs),
})

export type ServerConfig = ReturnType<typeof readConfig>

export interface ServerFlags {
  host?: string | undefined
  port?: number | undefined
  dataDir?: string | undefined
  databaseUrl?: string | undefined
}

export function readConfig(env: Record<string, string | undefined>, flags: ServerFlags) {
  const { host, port, dataDir: folder, databaseUrl } = flags
  const given = { SVC_HOST: host, SVC_PORT: port, SVC_DATA_DIR: folder, SVC_DATABASE_URL: databaseUrl }
  const set = Object.entries(given).filter(([, value]) => value !== undefined)
  const parsed = environment.safeParse({ ...env, ...Object.fromEntries(set) })
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    throw new ConfigError(`The configuration cannot be used.\n${lines.join('\n')}`)
  }
  const value = parsed.data
  const dataDir = value.SVC_DATA_DIR ?? envPaths('svc', { suffix: '' }).data
  return {
    host: value.SVC_HOST,
    port: value.SVC_PORT,
    dataDir,
    /** `postgres://...` or the path of the SQLite file. */
    databaseUrl: value.SVC_DATABASE_URL ?? join(dataDir, 'svc.db'),
    databasePool: value.SVC_DATABASE_POOL,
    /** PostgreSQL ends reads and writes that take longer. */
    readMs: value.SVC_READ_TIMEOUT_MS,
    writeMs: value.SVC_WRITE_TIMEOUT_MS,
    publicUrl: value.SVC_PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    /** The number of proxies before the server, each of which adds to X-Forwarded-For. */
    trustedProxies: value.SVC_TRUSTED_PROXIES,
    /** A file with models that the operator adds to the catalog. */
    modelsFile: value.SVC_MODELS_FILE ?? null,
    /** The issuer where people sign in; null: people sign in by one-time links only. */
    oidc: oidcOf(value),
    github: githubOf(value),
    /** The key that encrypts the values of secrets; null: a key file in the data folder. */
    secretsKey: value.SVC_SECRETS_KEY ?? null,
    /** Services whose secrets agents may ask for; null: any. */
    secretProviders: value.SVC_SECRET_PROVIDERS?.split(',').map((name) => name.trim()) ?? null,
    /** Whether this server runs the programs of workflows. */
    runsWorkflows: value.SVC_WORKFLOWS === 'on',
    /** A folder of programs that the operator gives to all workspaces. */
    workflowCatalogDir: value.SVC_WORKFLOW_CATALOG_DIR ?? null,
    /** The model that says what texts are about; null: texts are found by their words alone. */
    embeddings: embeddingsOf(value),
    /** Where the bytes of files are kept. */
    files: filesOf(value, dataDir),
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
    /** The time that a session lasts, in total and unused. */
    sessions: { totalMs: value.SVC_SESSION_MS, idleMs: value.SVC_SESSION_IDLE_MS },
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

/** A folder beside the database, unless another folder or a bucket is named. */
function filesOf(value: z.infer<typeof environment>, dataDir: string): BlobLocation {
  if (value.SVC_FILES_URL === undefined) return { kind: 'disk', folder: resolve(dataDir, dataFiles.files) }
  const keys = { keyId: value.AWS_ACCESS_KEY_ID, secret: value.AWS_SECRET_ACCESS_KEY }
  const location = readLocation(value.SVC_FILES_URL, keys)
  if (typeof location === 'string') throw new ConfigError(`SVC_FILES_URL: ${location}.`)
  if (location.kind === 's3' && isInTheClear(location.endpoint))
    throw new ConfigError('SVC_FILES_URL: the endpoint must begin with https://, unless it is on this machine.')
  return location
}

function embeddingsOf(value: z.infer<typeof environment>): EmbeddingSettings | null {
  const { SVC_EMBEDDINGS_URL: url, SVC_EMBEDDINGS_KEY: key, SVC_EMBEDDINGS_MODEL: model } = value
  if (url === undefined && model === undefined && key === undefined) return null
  if (url === undefined || model === undefined)
    throw new ConfigError('SVC_EMBEDDINGS_URL and SVC_EMBEDDINGS_MODEL are set together.')
  if (isInTheClear(url))
    throw new ConfigError('SVC_EMBEDDINGS_URL: must begin with https://, unless it is on this machine.')
  return { url: endpointOf(url), key: key ?? null, model }
}

/** All three settings or none. The secret and the tokens must not travel unencrypted, except within one machine. */
function oidcOf(value: z.infer<typeof environment>): OidcSettings | null {
  const { SVC_OIDC_ISSUER: issuer, SVC_OIDC_CLIENT_ID: clientId, SVC_OIDC_CLIENT_SECRET: clientSecret } = value
  if (issuer === undefined && clientId === undefined && clientSecret === undefined) return null
  if (issuer === undefined || clientId === undefined || clientSecret === undefined)
    throw new ConfigError('SVC_OIDC_ISSUER, SVC_OIDC_CLIENT_ID and SVC_OIDC_CLIENT_SECRET are set together.')
  if (isInTheClear(issuer))
    throw new ConfigError('SVC_OIDC_ISSUER: must begin with https://, unless the issuer is on this machine.')
  return { issuer, clientId, clientSecret }
}

/** A token, or a GitHub App with its key; both are used with the secret of the webhook. */
function githubOf(value: z.infer<typeof environment>): GithubSettings {
  const { SVC_GITHUB_TOKEN: token, SVC_GITHUB_APP_ID: appId, SVC_GITHUB_APP_KEY_FILE: keyFile } = value
  const apiUrl = value.SVC_GITHUB_API_URL.replace(/\/+$/, '')
  if (isInTheClear(apiUrl))
    throw new ConfigError('SVC_GITHUB_API_URL: must begin with https://, unless it is on this machine.')
  if ((appId === undefined) !== (keyFile === undefined))
    throw new ConfigError('SVC_GITHUB_APP_ID and SVC_GITHUB_APP_KEY_FILE are set together.')
  if (token !== undefined && appId !== undefined)
    throw new ConfigError('Set SVC_GITHUB_TOKEN or SVC_GITHUB_APP_ID, not both.')
  const app = appId === undefined || keyFile === undefined ? null : ({ kind: 'app', appId, keyFile } as const)
  const auth = token === undefined ? app : ({ kind: 'token', token } as const)
  return { apiUrl, auth, webhookSecret: value.SVC_GITHUB_WEBHOOK_SECRET ?? null }
}

function isInTheClear(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  const isHere = hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'))
  return protocol === 'http:' && !isHere
}
