import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codexConfig } from '../../test/kit/real-codex.ts'
import { opencodeConfig, writeOpencodeConfig } from '../../test/kit/real-opencode.ts'

/** Harnesses that are measured, and how a person starts them with the same prompt. */
export interface Subject {
  name: 'claude' | 'codex' | 'opencode'
  /** For all ways to start it. */
  env: Record<string, string>
  /** Writes a person's settings into their home. */
  settle(home: string): void
  ways: readonly Way[]
  startsPerRound: number
  /** By hand it has another home: what one start leaves there, such as a lock, would hold the other one up. */
  isApart?: boolean
}

/** A way to start it by hand; the program ends when its answer is there. */
export interface Way {
  label: string
  /** It is the one that the goal speaks of. */
  isGoal: boolean
  start(where: { file: string; cwd: string; env: Record<string, string> }): ChildProcess
}

export const subjectsAt = (url: string): readonly Subject[] => [
  {
    name: 'claude',
    env: {
      ANTHROPIC_BASE_URL: `${url}/s/run`,
      ANTHROPIC_API_KEY: 'dummy',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    settle: () => {},
    ways: [
      {
        label: 'claude by hand',
        isGoal: true,
        start: withPrompt(['-p', '--output-format', 'stream-json', '--verbose', 'Go.']),
      },
    ],
    startsPerRound: 3,
  },
  {
    name: 'codex',
    env: { OPENAI_API_KEY: 'dummy' },
    settle(home) {
      mkdirSync(join(home, '.codex'), { recursive: true })
      writeFileSync(join(home, '.codex', 'config.toml'), codexConfig(`${url}/s/run`))
    },
    ways: [
      {
        label: 'codex exec by hand',
        isGoal: true,
        start: withPrompt(['exec', '--json', '--skip-git-repo-check', 'Go.']),
      },
      { label: 'codex app-server spoken to by hand', isGoal: false, start: speakToCodex },
    ],
    startsPerRound: 3,
  },
  {
    name: 'opencode',
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    },
    settle: (home) => writeOpencodeConfig(home, opencodeConfig(`${url}/s/run`)),
    ways: [{ label: 'opencode run by hand', isGoal: true, start: withPrompt(['run', '--format', 'json', 'Go.']) }],
    // One takes seconds.
    startsPerRound: 1,
    // When its answer is there it exits, also while it still installs something, and the lock of that counts for a minute.
    isApart: true,
  },
]

function withPrompt(args: readonly string[]): Way['start'] {
  return ({ file, cwd, env }) => spawn(file, args, { cwd, env: { ...env, PWD: cwd }, stdio: 'ignore' })
}

/** The dialogue that svc has with it, without svc: what this takes is the program's own. */
const speakToCodex: Way['start'] = ({ file, cwd, env }) => {
  const child = spawn(file, ['app-server'], { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] })
  const say = (...lines: object[]) => child.stdin.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  let held = ''
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = `${held}${chunk.toString('utf8')}`.split('\n')
    held = lines.pop() ?? ''
    for (const line of lines) {
      const said = JSON.parse(line) as { id?: number; method?: string; result?: { thread?: { id: string } } }
      const threadId = said.id === 2 ? said.result?.thread?.id : undefined
      const input = [{ type: 'text', text: 'Go.', text_elements: [] }]
      if (threadId !== undefined) say({ id: 3, method: 'turn/start', params: { threadId, input } })
      if (said.method === 'turn/completed') child.stdin.end()
    }
  })
  const clientInfo = { name: 'bench', title: 'bench', version: '1' }
  const thread = { approvalPolicy: 'untrusted', sandbox: 'danger-full-access' }
  say(
    { id: 1, method: 'initialize', params: { clientInfo } },
    { method: 'initialized' },
    { id: 2, method: 'thread/start', params: thread },
  )
  return child
}
