import { z } from 'zod'

// The background service that keeps a device's daemon alive. `svc-device service ACTION` does the work and prints one
// line of JSON, a `serviceReply`; commands such as `svc device install-service` start that program and pass on its
// reply.

export const serviceActions = ['install', 'uninstall', 'start', 'stop', 'restart', 'status'] as const
export type ServiceAction = (typeof serviceActions)[number]

/** A problem of the service that a person should fix, and the command that fixes it. */
export const serviceProblem = z.object({
  code: z.enum([
    'node_missing',
    'main_missing',
    'program_changed',
    'unstable_path',
    'path_changed',
    'state_dir_differs',
    'unreadable',
    'not_enabled',
    'not_running',
    'failed',
    'crash_loop',
    'other_daemon',
    'not_lingering',
    'no_service_manager',
    'as_root',
  ]),
  message: z.string().max(4000),
  fix: z.string().max(1000),
})
export type ServiceProblem = z.infer<typeof serviceProblem>

const pid = z.number().int().positive()
const started = z.object({
  pid,
  /** `link.state` of the daemon, which may take longer than its start. */
  link: z.string().max(64),
})

/** The value of a good reply, by action. */
export const serviceValues = {
  install: started.extend({
    manager: z.enum(['systemd', 'launchd']),
    file: z.string().max(4096),
    /** False: it was already installed exactly like this. */
    changed: z.boolean(),
    /** The daemon started by hand that the service replaced. */
    tookOver: pid.nullable(),
    warnings: z.array(serviceProblem),
  }),
  uninstall: z.object({ file: z.string().max(4096), changed: z.boolean() }),
  start: started,
  restart: started,
  stop: z.object({ stopped: z.boolean() }),
  status: z.object({
    manager: z.enum(['systemd', 'launchd']).nullable(),
    file: z.string().max(4096).nullable(),
    installed: z.boolean(),
    /** The account of a service of the machine, which root alone changes; null: it is the person's own. */
    account: z.string().max(64).nullable(),
    enabled: z.boolean().nullable(),
    running: z.boolean().nullable(),
    /** The process the service manager started. */
    pid: pid.nullable(),
    /** True: the service runs while the person is not logged in; null where that cannot be chosen. */
    lingering: z.boolean().nullable(),
    problems: z.array(serviceProblem),
  }),
} satisfies Record<ServiceAction, z.ZodType>
export type ServiceValue<A extends ServiceAction> = z.infer<(typeof serviceValues)[A]>

export const serviceErrorCodes = [
  'usage',
  'unsupported_platform',
  'not_connected',
  'no_service_manager',
  'other_state_dir',
  'other_service',
  'not_root',
  'no_such_account',
  'unusable_path',
  'runs_active',
  'not_installed',
  'not_loaded',
  'tool_failed',
  'daemon_silent',
  'daemon_stays',
  'failed',
] as const
export type ServiceErrorCode = (typeof serviceErrorCodes)[number]

/** `value` is parsed again with the schema of the action in `serviceValues`. */
export const serviceReply = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), value: z.unknown() }),
  z.object({
    ok: z.literal(false),
    error: z.object({
      code: z.enum(serviceErrorCodes),
      message: z.string().max(8000),
      remediation: z.string().max(2000),
    }),
  }),
])
