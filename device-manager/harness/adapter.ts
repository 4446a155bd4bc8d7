import type { RunEventBody } from '../../shared/runs/events.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'
import type { HarnessName } from '../../shared/runs/harnesses.ts'
import type { McpServers } from '../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { UsedLimit } from '../../shared/device/used-limits.ts'
import type { GivenSkill } from './parts/skills.ts'

/**
 * A harness as the run host knows it. An adapter holds no state and does no I/O except in `detect`; what one run needs
 * to remember lives in the dialogue it makes.
 */
export interface HarnessAdapter {
  readonly name: HarnessName
  readonly can: {
    /** Goes on with an earlier session. */
    resume: boolean
    /** Takes text from a person while it runs. */
    input: boolean
    /** Asks before each tool call, so that the agent's lists decide. */
    ask: boolean
  }
  /** Installed, version, signed in: by looking, never by using credentials. Bounded in time by the probe. */
  detect(probe: HarnessProbe): Promise<HarnessReadiness>
  /** Files that are written when a person signs in or out, where it keeps any; absolute, whether they exist or not. */
  signInFiles?(machine: Pick<HarnessProbe, 'env' | 'homeDir'>): readonly string[]
  /** What it does at its first start in a new home, where a run has one of its own and would wait for that (first-start.ts). */
  firstStart?: FirstStart
  /** The files of the launch that are for skills, in one folder of the run's own, where it has any. They may be made before there is a run. */
  skillFiles?(facts: Pick<LaunchFacts, 'skills' | 'runDir'>): HarnessLaunch['files']
  /** By which name it loads a skill that it is given, where it has a tool for that. */
  skillName?(name: string): string
  /** Returns how to launch it. Pure. Throws HarnessLaunchError (parts/adapter-errors.ts) when the spec does not say enough. */
  command(spec: RunSpec, launch: LaunchFacts): HarnessLaunch
  dialogue(spec: RunSpec, options?: DialogueOptions): HarnessDialogue
}

export interface DialogueOptions {
  /**
   * Takes secrets out of a text. A dialogue that cuts texts applies it before the cut: half a secret is not recognised
   * afterwards. The run host redacts all events besides.
   */
  redactText?: RedactText
  /** Makes what takes secrets out of bytes that come in pieces: no piece shows that it holds half a secret. */
  redactStream?: () => RedactStream
  /** The folder in which the run works, and the same with every link followed. */
  cwd?: string
  realCwd?: string
  /** As in the facts of the launch. */
  mcpServers?: McpServers
  skills?: readonly GivenSkill[]
}
export type RedactText = (text: string) => string
export interface RedactStream {
  /** Returns what is safe by now; what may become a secret is held back. */
  push(bytes: Uint8Array): Uint8Array
  /** Returns what is held back and can be shown when nothing more came for a while. */
  release(): Uint8Array
  /** Returns what is held back, at the end. */
  flush(): Uint8Array
}

export interface FirstStart {
  /** Raised when what is done at a first start changes, so that what an earlier release kept is made anew. */
  edition: number
  /** Started with these and told what `talk` says, the program sets itself up in `home` and exits with 0 when its input ends. */
  args: readonly string[]
  /** Absent: its input is closed at once. */
  talk?: () => ProbeTalk
  env(home: string): Readonly<Record<string, string>>
  /** Says of a file in `home` that a run's home begins with it. */
  keeps(name: string): boolean
}

/** The door to the machine for `detect`. */
export interface HarnessProbe {
  env: Readonly<Record<string, string>>
  homeDir: string
  /** Absolute path of a program on env's PATH, or null. */
  which(program: string): Promise<string | null>
  /** Runs a program with a time limit, its whole process group killed at the end. Never throws. */
  run(file: string, args: readonly string[], timeoutMs: number, talk?: ProbeTalk): Promise<ProbeResult>
  exists(path: string): Promise<boolean>
  /** The first 64 KiB of a settings file as text; null where it cannot be read. Never of a file with credentials. */
  readStart(path: string): Promise<string | null>
}
/** What is said to a program that is not a run's, while it runs. */
export interface ProbeTalk {
  opening: string
  /** Takes an object that the program wrote as a line, returns what is said to that; null: its input is closed. */
  answer(said: Record<string, unknown>): string | null
}
export interface ProbeResult {
  exitCode: number | null
  stdout: string
  stderr: string
  timedOut: boolean
}

export interface HarnessReadiness {
  installed: boolean
  version: string | null
  signedIn: boolean | null
  /** Its version is older than the oldest that works (parts/lowest-versions.ts). */
  tooOld?: boolean
  message: string | null
  /** The account it is signed in with (parts/account.ts); left out where the harness does not say. */
  account?: string
}

/** Facts of this launch that are not part of the spec. */
export interface LaunchFacts {
  /** Environment of the person's login shell, already cut to the allow-list. */
  env: Readonly<Record<string, string>>
  cwd: string
  /** `cwd` and all folders that decide whether a person trusts the repository that it lies in. */
  foldersAround: readonly string[]
  /** The folder of the run and those above it, up to the root of its repository. */
  repositoryFolders: readonly string[]
  /** An empty folder of this run's own (0700), removed after the run. */
  runDir: string
  isRoot: boolean
  loginShell: string
  /** As `detect` said it last; null: not known. */
  version: string | null
  /**
   * Of the workspace, with all variables filled in (shared/runs/filled-servers.ts). They may hold secrets, so they go into files or over
   * standard input, never into arguments or variables. None while the launch is only planned.
   */
  mcpServers: McpServers
  /** From the folders that the agent names, as they were read for this run. */
  skills: readonly GivenSkill[]
  /** Holds the files that a first start of this version left (`firstStart`); null: there are none. */
  firstStartDir: string | null
}

export interface HarnessLaunch {
  /** An absolute path, or a name to be looked up on the PATH of the environment that the harness gets. */
  file: string
  args: readonly string[]
  /** Added to the environment given in the facts. */
  env: Readonly<Record<string, string>>
  /**
   * `pty`: all in a pseudo-terminal. `pipes`: stdin, stdout and stderr are pipes, in a session of its own. `http`: pipes,
   * and the program serves HTTP on loopback, whose events and answers become lines (parts/http-lines.ts).
   */
  io: 'pty' | 'pipes' | 'http'
  /** Its bytes are what people read, so secrets are taken out of the stream itself. Always so with a `pty`. */
  isTranscript?: boolean
  /** With `io: 'http'`. */
  http?: HttpDoor
  /** Written before the launch, mode 0600; paths are inside `runDir`. */
  files: readonly { path: string; content: string }[]
  /**
   * Made before the launch where the target is there, so that a folder of the run's own holds files of the person's; paths
   * are inside `runDir`. `isMade`: the target is a folder that is made where it is missing.
   */
  links?: readonly { path: string; target: string; isMade?: boolean }[]
  /** All files of the folder `from` are copied into the folder `path`, inside `runDir`. What cannot be had, the program makes itself. */
  copies?: readonly { path: string; from: string }[]
}

/** Says how svc speaks to a program that serves HTTP. It prints its address in a line of its own. */
export interface HttpDoor {
  /** The path at which its events are served (text/event-stream); asked for as soon as its address is known. */
  events: string
  /** Of HTTP's basic authentication; the password is made for the run and given to the program in this variable. */
  user: string
  passwordVariable: string
}

/** Reads one run's output and answers its requests. Incremental and pure: never throws, never waits. */
export interface HarnessDialogue {
  /** Returns what to write to standard input at once after the launch (pipes only). */
  open(): DialogueOutput
  /** Bytes from stdout or the pty, in any cut. */
  push(chunk: Uint8Array): DialogueOutput
  pushStderr(chunk: Uint8Array): DialogueOutput
  /** The decision on a question that `asks` carried. */
  answer(askId: string, decision: CallDecision): DialogueOutput
  /** A person's text, when `can.input`. */
  input(text: string): DialogueOutput
  /** No bytes came for a second: returns what was held back for more of them. */
  silent?(): DialogueOutput
  /** The run is to end: what the harness is told beside the interrupt that it gets, where it knows something better. */
  interrupt?(): DialogueOutput
  /** Standard output ended; what is still buffered comes out. `exit`, where it is known by then, goes into a result. */
  end(exit?: ProcessExit): DialogueOutput
  /** Returns how the run ended, from what was read and how the process left. */
  outcome(exit: ProcessExit): HarnessOutcome
}

export interface DialogueOutput {
  events: readonly RunEventBody[]
  /** Is written to standard input, in order. */
  write?: string
  /** The harness gave its result: it has a grace time to exit by itself. */
  finished?: boolean
  /** It must not go on: its processes are ended at once. */
  endNow?: boolean
  /** Close standard input after `write`. */
  closeInput?: boolean
  asks?: readonly ToolAsk[]
}
export interface ToolAsk {
  askId: string
  toolCallId: string | null
  name: string
  input: unknown
  /** The folder in which the harness is now, when it says so: paths that are not absolute may be meant from there. */
  cwd?: string
}
/** A tool call as the agent's lists name it. */
export type NamedCall = Pick<ToolAsk, 'name' | 'input'>
/** `stop`: the run ends now; the harness is told so in the way it understands, and is interrupted if it goes on. */
export type CallDecision =
  | { behavior: 'allow'; rule: string | null }
  | { behavior: 'deny'; message: string; stop?: boolean }

export interface ProcessExit {
  exitCode: number | null
  signal: string | null
  /** The run host ended it, for this reason. */
  stoppedFor: ExitReason | null
}
export interface HarnessOutcome {
  exitReason: ExitReason
  message: string | null
  /** The next run goes on with this session; null: there is none, or it must not be gone on with. */
  sessionId: string | null
  /** The harness said the session it was told to resume does not exist. */
  resumeRefused: boolean
  /** With `rate_limited`: when the account may be used again, in ms since 1970. Left out where the harness does not say. */
  limitResetsAt?: number
  /** How much of its limits the account has used, where the harness says. */
  limitsUsed?: readonly UsedLimit[]
  /** The kind of failure of a request to the model that ended the run; left out where none did. */
  failure?: FailureKind
}

/**
 * What kind of failure ended a request to the model. Every adapter sorts the failures of its harness into these kinds, and the same
 * follows from a kind whatever the harness (parts/failure.ts).
 */
export type FailureKind =
  /** The answer was cut off at the most that the model may say at once. */
  | 'output_limit'
  /** The prompt, or the session, is longer than the model can read. */
  | 'context_full'
  /** Of requests, or of the account's allowance. */
  | 'rate_limit'
  | 'unauthorised'
  | 'unknown_model'
  /** The provider was not reached, or its answer broke off. */
  | 'connection'
  /** The provider is overloaded, or answers with an error of its own. */
  | 'provider'
  | 'other'
