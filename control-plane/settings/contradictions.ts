import { usedEveryMs } from '../http/auth.ts'
import { runTokenMs } from '../http/run-token.ts'
import type { Settings, VariableName } from './variables.ts'

// Settings that may each stand alone, but not together.

type Duration = Extract<VariableName, `${string}_MS`>

interface DurationOrder {
  shorter: Duration
  longer: Duration
  why: string
  /** Also refused where the shorter one has its default, which the other one is below. */
  isStrict?: true
  mayBeEqual?: true
}

const durationOrders: readonly DurationOrder[] = [
  {
    shorter: 'SVC_HEARTBEAT_MS',
    longer: 'SVC_LEASE_MS',
    why: 'a device would lose its runs between two heartbeats',
    isStrict: true,
  },
  {
    shorter: 'SVC_PING_MS',
    longer: 'SVC_DEAD_MS',
    why: 'a link that works would count as dead between two pings',
    isStrict: true,
  },
  {
    shorter: 'SVC_OFFER_MS',
    longer: 'SVC_LEASE_MS',
    why: 'a device would be waited for longer than it counts as here',
  },
  {
    shorter: 'SVC_OFFER_MS',
    longer: 'SVC_DISPATCH_TIMEOUT_MS',
    why: 'a run would end before it could be offered to a second device',
  },
  {
    shorter: 'SVC_SESSION_IDLE_MS',
    longer: 'SVC_SESSION_MS',
    why: 'every session would be over before it could count as unused',
    mayBeEqual: true,
  },
  {
    shorter: 'SVC_NO_PROGRESS_MS',
    longer: 'SVC_RUN_TIMEOUT_MS',
    why: 'every run would be over before its silence could count',
    mayBeEqual: true,
  },
  {
    shorter: 'SVC_FIRST_EVENT_MS',
    longer: 'SVC_RUN_TIMEOUT_MS',
    why: 'every run would be over before the wait for its first event could count',
    mayBeEqual: true,
  },
  {
    shorter: 'SVC_FIRST_EVENT_MS',
    longer: 'SVC_NO_PROGRESS_MS',
    why: 'a run without a first event would end for its silence',
    mayBeEqual: true,
  },
]

/** One sentence for each contradiction. */
export function contradictionsIn(settings: Settings, isSet: (name: VariableName) => boolean): string[] {
  const told = (name: Duration) => `${name} (${settings[name]}${isSet(name) ? '' : ', the default'})`
  const sentences = durationOrders.flatMap(({ shorter, longer, why, isStrict, mayBeEqual }) => {
    const [short, long] = [settings[shorter]!, settings[longer]!]
    const isJudged = isSet(shorter) || (isStrict === true && isSet(longer))
    if (!isJudged || (mayBeEqual === true ? short <= long : short < long)) return []
    const example = `${shorter}=${Math.max(1, Math.floor(long / 3))} with ${longer}=${long}`
    return [
      `${told(shorter)} must be ${mayBeEqual === true ? 'no longer' : 'shorter'} than ${told(longer)}, since ${why}. Example: ${example}`,
    ]
  })
  return [
    ...sentences,
    ...idleTrouble(settings, isSet),
    ...runTokenTrouble(settings),
    ...halves(settings),
    ...clusterTrouble(settings),
    ...warmTrouble(settings),
  ]
}

/** A use is noted once a minute, so a shorter limit would end what is in use. */
function idleTrouble({ SVC_SESSION_IDLE_MS: idleMs }: Settings, isSet: (name: VariableName) => boolean): string[] {
  if (!isSet('SVC_SESSION_IDLE_MS') || idleMs > usedEveryMs) return []
  return [
    `SVC_SESSION_IDLE_MS (${idleMs}) must be longer than ${usedEveryMs}, since a use is noted once in so many milliseconds. Example: SVC_SESSION_IDLE_MS=3600000`,
  ]
}

function runTokenTrouble({ SVC_RUN_TIMEOUT_MS: runMs }: Settings): string[] {
  if (runMs <= runTokenMs) return []
  return [
    `SVC_RUN_TIMEOUT_MS (${runMs}) must be no longer than ${runTokenMs}, since the token of a run works for so many milliseconds. Example: SVC_RUN_TIMEOUT_MS=86100000`,
  ]
}

/** An image of a cluster is pulled by each node, so its name must stand for the same one on all. */
function clusterTrouble(settings: Settings): string[] {
  if (settings.SVC_SANDBOX !== 'kubernetes') return []
  const needed = ['SVC_SANDBOX_NAMESPACE', 'SVC_SANDBOX_BROKER_HOST', 'SVC_SANDBOX_IMAGE'] as const
  const missing = needed.filter((name) => settings[name] === undefined)
  if (missing.length > 0) return [`SVC_SANDBOX=kubernetes needs ${missing.join(' and ')}, too (docs/sandbox.md).`]
  if (/@sha256:[0-9a-f]{64}$/.test(settings.SVC_SANDBOX_IMAGE!)) return []
  return [
    `SVC_SANDBOX_IMAGE (${settings.SVC_SANDBOX_IMAGE}) must end with its digest on Kubernetes. Example: SVC_SANDBOX_IMAGE=images.example.com/svc-sandbox@sha256:...`,
  ]
}

function warmTrouble({ SVC_SANDBOX: kind, SVC_SANDBOX_WARM: warm, SVC_SANDBOX_MAX: most }: Settings): string[] {
  if (warm === 0) return []
  if (kind === 'kubernetes')
    return [
      'SVC_SANDBOX_WARM cannot be set with SVC_SANDBOX=kubernetes, since a pod that waits for its run would learn of it a minute late. Example: SVC_SANDBOX_WARM=0',
    ]
  if (warm <= most) return []
  return [
    `SVC_SANDBOX_WARM (${warm}) must be at most SVC_SANDBOX_MAX (${most}), since those made ahead are among them. Example: SVC_SANDBOX_WARM=${Math.ceil(most / 2)}`,
  ]
}

interface SettingGroup {
  names: readonly VariableName[]
  /** Set with them only; not needed. */
  extra?: readonly VariableName[]
  example: string
}

const settingGroups: readonly SettingGroup[] = [
  {
    names: ['SVC_OIDC_ISSUER', 'SVC_OIDC_CLIENT_ID', 'SVC_OIDC_CLIENT_SECRET'],
    example: 'SVC_OIDC_ISSUER=https://id.example.com SVC_OIDC_CLIENT_ID=svc SVC_OIDC_CLIENT_SECRET=...',
  },
  {
    names: ['SVC_EMBEDDINGS_URL', 'SVC_EMBEDDINGS_MODEL'],
    extra: ['SVC_EMBEDDINGS_KEY'],
    example: 'SVC_EMBEDDINGS_URL=https://api.openai.com/v1 SVC_EMBEDDINGS_MODEL=text-embedding-3-small',
  },
  {
    names: ['SVC_SMTP_URL', 'SVC_MAIL_FROM'],
    example: 'SVC_SMTP_URL=smtps://smtp.example.com SVC_MAIL_FROM=svc@example.com',
  },
  {
    names: ['SVC_GITHUB_APP_ID', 'SVC_GITHUB_APP_KEY_FILE'],
    example: 'SVC_GITHUB_APP_ID=123456 SVC_GITHUB_APP_KEY_FILE=/etc/svc/github-app.pem',
  },
]

function halves(settings: Settings): string[] {
  const has = (name: VariableName) => settings[name] !== undefined
  const sentences = settingGroups.flatMap(({ names, extra = [], example }) => {
    const missing = names.filter((name) => !has(name))
    if (missing.length === 0 || ![...names, ...extra].some(has)) return []
    const found = [...names, ...extra].filter(has).join(' and ')
    return [
      `${listed(names)} are set together; there is ${found} without ${missing.join(' and ')}. Example: ${example}`,
    ]
  })
  if (has('SVC_GITHUB_TOKEN') && has('SVC_GITHUB_APP_ID'))
    sentences.push(
      'SVC_GITHUB_TOKEN and SVC_GITHUB_APP_ID are both set, and GitHub is asked with one of them. Set one alone. Example: SVC_GITHUB_TOKEN=github_pat_...',
    )
  return sentences
}

const listed = (names: readonly string[]): string => `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
