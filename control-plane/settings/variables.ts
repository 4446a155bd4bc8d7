import { z } from 'zod'
import { linkLimits, runLimits } from '../../shared/device/limits.ts'
import { defaultReadMs, defaultWriteMs } from '../db/open.ts'
import { readHost } from '../outbound/host-name.ts'
import { parseKey } from '../vault/vault.ts'
import { postgresTrouble } from './addresses.ts'
import {
  count,
  onOrOff,
  httpAddress,
  milliseconds,
  oneOf,
  optionalDays,
  optionalMilliseconds,
  token,
  words,
  type Setting,
} from './kinds.ts'

// Every variable that `svc-server` reads. What each is for stands in docs/operations.md.

const databaseUrl = z
  .string()
  .superRefine((text, context) => {
    const trouble = postgresTrouble(text)
    if (trouble !== null) context.addIssue({ code: 'custom', message: trouble })
  })
  .optional()

/** A name or an address, without the port, which has a variable of its own. */
const host = z
  .string()
  .regex(/^[\w.:%-]{1,255}$/)
  .refine((text) => !/^[^:]*:\d*$/.test(text))
  .default('127.0.0.1')

/** Names between commas; each is one. */
const names = z
  .string()
  .max(10_000)
  .transform((text) => text.split(',').map((name) => name.trim()))
  .refine((list) => list.every((name) => name !== ''))
  .optional()

const hosts = names
  .unwrap()
  .transform((list) => list.map(readHost))
  .refine((list) => !list.includes(null))
  .transform((list) => list.filter((name) => name !== null))
  .optional()

const address = (example: string, rules?: Parameters<typeof httpAddress>[1]) => {
  const setting = httpAddress(example, rules)
  return { ...setting, schema: setting.schema.optional() }
}
const githubApi = httpAddress('https://git.example.com/api/v3', { isEncrypted: true })

const mib = 1024 ** 2
const sizeText = /^([1-9]\d{0,7})\/(\d{1,4}(?:\.\d{1,2})?)\/([1-9]\d{0,6})\/([1-9]\d{0,9})$/

/** What a sandbox of a size has. */
const sandboxSize = (usual: string) => ({
  schema: z
    .string()
    .default(usual)
    .transform((text, context) => {
      const [, memory, cpus, pids, disk] = sizeText.exec(text) ?? []
      // Less than these no engine takes, or no runner starts in.
      if (memory === undefined || Number(memory) < 128 || Number(cpus) < 0.1 || Number(pids) < 64) {
        context.addIssue({ code: 'custom' })
        return z.NEVER
      }
      return {
        memoryBytes: Number(memory) * mib,
        cpus: Number(cpus),
        pids: Number(pids),
        diskBytes: Number(disk) * mib,
      }
    }),
  must: 'MiB of memory (128 at least), processors (0.1), processes (64) and MiB of disk, between slashes',
  example: usual,
})

const clusterName = (example: string) => ({
  schema: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/)
    .optional(),
  must: 'the name of an object of the cluster: small letters, digits, dots and dashes',
  example,
})

/** Its name and password are percent-encoded as addresses have them. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username)
    decodeURIComponent(password)
    return true
  } catch {
    return false
  }
}

const sealingKey = {
  schema: z
    .string()
    .refine((text) => parseKey(text) !== null)
    .optional(),
  must: '32 bytes as hex or base64',
  example: '$(openssl rand -base64 32)',
  isSecret: true,
} as const

export const variables = {
  SVC_HOST: { schema: host, must: 'a name or an address of this machine, without a port', example: '127.0.0.1' },
  SVC_PORT: count({ least: 0, most: 65_535, example: '4400' }, 4400),
  SVC_DATA_DIR: words('/var/lib/svc'),
  SVC_DATABASE_URL: {
    schema: databaseUrl,
    must: 'an address that begins with postgres://',
    example: 'postgres://svc:p%40ss@db.example.com:5432/svc',
    isSecret: true,
  },
  SVC_DATABASE_POOL: count({ least: 1, most: 200, example: '8' }, 8),
  SVC_READ_TIMEOUT_MS: milliseconds(defaultReadMs),
  SVC_WRITE_TIMEOUT_MS: milliseconds(defaultWriteMs),
  SVC_PUBLIC_URL: address('https://svc.example.com', { isAsked: true }),
  SVC_TRUSTED_PROXIES: count({ least: 0, most: 10, example: '1' }, 0),
  SVC_ALLOW_HOSTS: {
    schema: hosts,
    must: 'names or addresses of hosts between commas, without ports',
    example: 'git.example.lan,10.0.0.5',
  },
  SVC_METRICS_TOKEN: token('$(openssl rand -hex 24)', { least: 16 }),
  SVC_MODELS_FILE: words('/etc/svc/models.json'),
  SVC_SERVICES_FILE: words('/etc/svc/services.json'),
  SVC_OIDC_ISSUER: address('https://id.example.com', { isEncrypted: true }),
  SVC_OIDC_CLIENT_ID: words('svc', 500),
  SVC_OIDC_CLIENT_SECRET: { ...words('the secret that the issuer gave', 2_000), isSecret: true },
  SVC_GITHUB_API_URL: { ...githubApi, schema: githubApi.schema.default('https://api.github.com') },
  SVC_GITHUB_TOKEN: token('github_pat_...', { most: 500 }),
  SVC_GITHUB_APP_ID: {
    schema: z
      .string()
      .regex(/^[A-Za-z0-9._-]{1,100}$/)
      .optional(),
    must: 'the id of a GitHub App: 1 to 100 letters, digits and . _ -',
    example: '123456',
    // The key of the app is easily put here.
    isSecret: true,
  },
  SVC_GITHUB_APP_KEY_FILE: words('/etc/svc/github-app.pem'),
  SVC_GITHUB_WEBHOOK_SECRET: {
    schema: z.string().min(8).max(1000).optional(),
    must: '8 to 1000 characters long',
    example: '$(openssl rand -hex 24)',
    isSecret: true,
  },
  SVC_SECRETS_KEY: sealingKey,
  SVC_SECRETS_OTHER_KEY: sealingKey,
  SVC_SECRET_PROVIDERS: { schema: names, must: 'names between commas', example: 'github,npm' },
  SVC_WORKFLOWS: oneOf(['on', 'off'], 'on'),
  SVC_WORKFLOW_CATALOG_DIR: words('/etc/svc/workflows'),
  SVC_SANDBOX: oneOf(['none', 'docker', 'kubernetes'], 'none'),
  SVC_SANDBOX_SOCKET: words('/run/user/1000/podman/podman.sock', 107),
  SVC_SANDBOX_NAMESPACE: clusterName('svc-sandboxes'),
  SVC_SANDBOX_BROKER_HOST: words('svc-broker.svc.svc.cluster.local', 253),
  SVC_SANDBOX_BROKER_PORT: count({ least: 1, most: 65_535, example: '4401' }, 4_401),
  SVC_SANDBOX_STORAGE_CLASS: clusterName('fast'),
  SVC_SANDBOX_CLUSTER_URL: address('https://10.0.0.1:6443', { isEncrypted: true }),
  SVC_SANDBOX_CLUSTER_TOKEN_FILE: words('/var/run/secrets/kubernetes.io/serviceaccount/token'),
  SVC_SANDBOX_CLUSTER_CA_FILE: words('/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'),
  SVC_SANDBOX_IMAGE: words('svc-sandbox', 500),
  SVC_SANDBOX_RUNTIME: words('runsc', 100),
  SVC_SANDBOX_MAX: count({ least: 1, most: 10_000, example: '4' }, 4),
  SVC_SANDBOX_MAX_PER_WORKSPACE: {
    ...count({ least: 1, most: 10_000, example: '2' }, 4),
    schema: count({ least: 1, most: 10_000, example: '2' }, 4).schema.unwrap().optional(),
  },
  SVC_SANDBOX_WARM: count({ least: 0, most: 1_000, example: '2' }, 0),
  SVC_SANDBOX_SMALL: sandboxSize('2048/1/512/10240'),
  SVC_SANDBOX_MEDIUM: sandboxSize('4096/2/1024/20480'),
  SVC_SANDBOX_LARGE: sandboxSize('8192/4/2048/40960'),
  SVC_SANDBOX_ANTHROPIC_KEY: token('sk-ant-...', { most: 500 }),
  SVC_SANDBOX_ANTHROPIC_URL: address('https://gateway.example.com/anthropic'),
  SVC_SANDBOX_OPENAI_KEY: token('sk-...', { most: 500 }),
  SVC_SANDBOX_OPENAI_URL: address('https://gateway.example.com/openai'),
  SVC_SMTP_URL: {
    schema: z
      .string()
      .max(2_000)
      .refine((text) => /^smtps?:\/\/[^/?#\s]+\/?$/i.test(text) && URL.canParse(text) && isDecodable(new URL(text)))
      .optional(),
    must: 'an address that begins with smtps:// or smtp://, without a path',
    example: 'smtps://svc%40example.com:p%40ss@smtp.example.com:465',
    isSecret: true,
  },
  SVC_MAIL_FROM: {
    schema: z
      .string()
      .max(320)
      .regex(/^(?:[^<>@"\p{Cc}]{0,100}<[^<>@\s"]{1,64}@[^<>@\s"]{1,253}>|[^<>@\s"]{1,64}@[^<>@\s"]{1,253})$/u)
      .optional(),
    must: 'an address of mail, alone or as `Name <address>`',
    example: 'svc <svc@example.com>',
  },
  SVC_EMBEDDINGS_URL: address('https://api.openai.com/v1', { isEncrypted: true }),
  SVC_EMBEDDINGS_KEY: token('sk-...'),
  SVC_EMBEDDINGS_MODEL: words('text-embedding-3-small', 200),
  SVC_FILES_URL: words('s3://bucket/prefix?endpoint=https://s3.example.com', 2_000),
  SVC_FILES_OTHER_URL: words('file:///var/lib/svc/files', 2_000),
  AWS_ACCESS_KEY_ID: { ...words('the id that the service gave', 500), isSecret: true },
  AWS_SECRET_ACCESS_KEY: { ...words('the key that the service gave', 500), isSecret: true },
  SVC_KEEP_RUNS_DAYS: optionalDays(),
  SVC_KEEP_TASK_HISTORY_DAYS: optionalDays(),
  SVC_KEEP_FILE_VERSIONS_DAYS: optionalDays(),
  SVC_LOG_LEVEL: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'info'),
  SVC_RATE_LIMIT_PER_MINUTE: count({ least: 1, most: 1_000_000_000, example: '600000' }, 600_000),
  SVC_CHECK_REPLIES: onOrOff(),
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
  SVC_DRAIN_MS: optionalMilliseconds({ leastMs: 0, example: '5000' }),
  SVC_SESSION_MS: milliseconds(7 * 86_400_000),
  SVC_SESSION_IDLE_MS: milliseconds(3 * 86_400_000),
  SVC_TOKEN_IDLE_MS: optionalMilliseconds({ leastMs: 60_000, example: '2592000000' }),
  SVC_STREAM_CHECK_MS: milliseconds(10_000),
  SVC_PING_MS: milliseconds(linkLimits.pingMs),
  SVC_DEAD_MS: milliseconds(linkLimits.deadMs),
} as const satisfies Record<string, Setting>

export type VariableName = keyof typeof variables
export const variableNames = Object.keys(variables) as VariableName[]

const schemas = Object.fromEntries(Object.entries(variables).map(([name, { schema }]) => [name, schema]))
export const environment = z.object(schemas as { [Name in VariableName]: (typeof variables)[Name]['schema'] })

export type Settings = z.infer<typeof environment>
