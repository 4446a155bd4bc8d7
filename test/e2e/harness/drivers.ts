import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HarnessName } from '../../../shared/runs/harnesses.ts'
import { qwenCommand, qwenShell } from '../../kit/real-acp.ts'
import { signInClaude } from '../../kit/real-claude.ts'
import { codexConfig } from '../../kit/real-codex.ts'
import { opencodeConfig, opencodeEngine, opencodeModels, writeOpencodeConfig } from '../../kit/real-opencode.ts'
import type { StubStep, StubTool } from '../../kit/stub-llm.ts'

/** Says what the table of cases must know of a harness; all else is the same for each. */
export interface HarnessDriver {
  /** As scripts/fetch-harness calls its program. */
  program: 'claude' | 'codex' | 'opencode' | 'qwen'
  harness: HarnessName
  /** Fields of an agent on it, beside its harness. */
  agentFields: (modelUrl: string) => Record<string, unknown>
  /** As on a person's machine: found and signed in by the login shell's profile and the person's settings. */
  install: (home: string, options: { binDir: string; modelUrl: string }) => void
  /** The same without a sign-in. */
  installSignedOut: (home: string, options: { binDir: string; modelUrl: string }) => void
  /** Where a person keeps skills for it, in their home. */
  skills: string
  shell: (command: string) => StubTool
  /** A call of the tool `say` of the MCP server `files`. */
  say: (text: string) => StubTool
  /** It asks svc before each request to its model, too. */
  asksBeforeRequests: boolean
  /** Says what the model says again when the program did not know the tool yet. */
  sayAgainWhen: string | null
  holdsStrict: boolean
  /** A session keeps the AGENT.md that it began with, so a changed one begins a new session. */
  keepsInstructions: boolean
  /** A model and a backup model that it takes from the agent; null: it takes none. */
  models: { model: string; backupModel: string } | null
  /** Says who goes on with the backup model: the harness within its run, or another run. */
  backupBy: 'itself' | 'another run' | null
  /**
   * The provider's refusal that names when a limit is over (in s since 1970), and in how many seconds that is: it waits for
   * shorter ones itself. null: it knows of none.
   */
  limit: { seconds: number; error: (resetsAt: number) => NonNullable<StubStep['error']> } | null
  /** It tells how many tokens a run used. */
  tellsUsage: boolean
  /** Says what becomes of a run where nobody has signed in. */
  signedOut: { waits: RegExp } | { fails: string; message: RegExp }
}

const pathOf = (binDir: string) => `export PATH='${binDir}':"$PATH"\n`
const shell = (command: string): StubTool => ({ kind: 'shell', command })

export const claudeDriver: HarnessDriver = {
  program: 'claude',
  harness: 'claude',
  agentFields: () => ({}),
  install: (home, options) => signInClaude(home, { ...options, isSubscriber: true }),
  installSignedOut(home, { binDir, modelUrl }) {
    writeFileSync(join(home, '.profile'), `${pathOf(binDir)}export ANTHROPIC_BASE_URL='${modelUrl}'\n`)
  },
  skills: '.claude/skills',
  shell,
  say: (text) => ({ name: 'mcp__files__say', input: { text } }),
  asksBeforeRequests: false,
  sayAgainWhen: null,
  holdsStrict: true,
  keepsInstructions: false,
  models: { model: 'claude-opus-4-5', backupModel: 'claude-sonnet-4-5' },
  backupBy: 'itself',
  limit: {
    seconds: 8,
    error: (resetsAt) => ({
      status: 429,
      headers: {
        'anthropic-ratelimit-unified-status': 'rejected',
        'anthropic-ratelimit-unified-reset': String(resetsAt),
        'anthropic-ratelimit-unified-representative-claim': 'five_hour',
      },
    }),
  },
  tellsUsage: true,
  signedOut: { waits: /Claude Code/ },
}

export const codexDriver: HarnessDriver = {
  program: 'codex',
  harness: 'codex',
  agentFields: () => ({}),
  install(home, { binDir, modelUrl }) {
    mkdirSync(join(home, '.codex'), { recursive: true })
    writeFileSync(join(home, '.codex', 'config.toml'), codexConfig(modelUrl))
    appendFileSync(join(home, '.profile'), `${pathOf(binDir)}export OPENAI_API_KEY=dummy\n`)
  },
  installSignedOut(home, { binDir }) {
    writeFileSync(join(home, '.profile'), pathOf(binDir))
  },
  skills: '.codex/skills',
  shell,
  say: (text) => ({ name: 'say', namespace: 'mcp__files', input: { text } }),
  asksBeforeRequests: false,
  sayAgainWhen: null,
  holdsStrict: true,
  keepsInstructions: true,
  models: { model: 'gpt-5.1-codex', backupModel: 'gpt-5.1-codex-mini' },
  backupBy: 'another run',
  limit: {
    seconds: 8,
    error: (resetsAt) => ({
      status: 429,
      type: 'usage_limit_reached',
      resetsAt,
      headers: {
        'x-codex-primary-used-percent': '100',
        'x-codex-primary-window-minutes': '300',
        'x-codex-primary-reset-at': String(resetsAt),
      },
    }),
  },
  tellsUsage: true,
  signedOut: { waits: /Codex/ },
}

export const opencodeDriver: HarnessDriver = {
  program: 'opencode',
  harness: 'opencode',
  agentFields: () => ({}),
  install(home, { binDir, modelUrl }) {
    writeOpencodeConfig(home, opencodeConfig(modelUrl), { models: opencodeModels })
    const own = join(home, 'bin')
    mkdirSync(own, { recursive: true })
    // A variable of the person's that no run is given.
    const settings = Object.entries(opencodeEngine).map(([name, value]) => `${name}=${value}`)
    const program = `#!/bin/sh\n${settings.join(' ')} exec '${binDir}/opencode' "$@"\n`
    writeFileSync(join(own, 'opencode'), program, { mode: 0o755 })
    appendFileSync(join(home, '.profile'), pathOf(own))
  },
  installSignedOut(home, { binDir }) {
    writeOpencodeConfig(home, '{}')
    writeFileSync(join(home, '.profile'), pathOf(binDir))
  },
  skills: '.config/opencode/skills',
  shell,
  say: (text) => ({ name: 'files_say', input: { text } }),
  asksBeforeRequests: true,
  sayAgainWhen: null,
  holdsStrict: true,
  keepsInstructions: false,
  models: { model: 'stub/stub-model', backupModel: 'stub/second-model' },
  backupBy: 'another run',
  limit: {
    seconds: 130,
    error: (resetsAt) => ({ status: 429, retryAfter: resetsAt - Math.floor(Date.now() / 1000) }),
  },
  tellsUsage: true,
  signedOut: { fails: 'harness_start_failed', message: /auth login/ },
}

/** Qwen Code, as the command of an agent that is spoken to by ACP. */
export const acpDriver: HarnessDriver = {
  program: 'qwen',
  harness: 'command',
  agentFields: (modelUrl) => ({ command: qwenCommand(modelUrl), protocol: 'acp' }),
  install(home, { binDir }) {
    appendFileSync(join(home, '.profile'), pathOf(binDir))
  },
  installSignedOut(home, { binDir }) {
    writeFileSync(join(home, '.profile'), pathOf(binDir))
  },
  skills: '.qwen/skills',
  shell: qwenShell,
  say: (text) => ({ name: 'mcp__files__say', input: { text } }),
  asksBeforeRequests: false,
  sayAgainWhen: 'not found in registry',
  holdsStrict: false,
  keepsInstructions: true,
  models: null,
  backupBy: null,
  limit: null,
  // Of the program whose versions it is tested with, none says it.
  tellsUsage: false,
  signedOut: { fails: 'harness_start_failed', message: /401/ },
}
