import { describe, expect, it } from 'vitest'
import { specOf } from '../../../test/kit/harness-recordings.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { LaunchFacts } from '../adapter.ts'
import { claudeLaunch } from './launch.ts'
import { isAtLeast, versionIn } from '../parts/version.ts'

const launch = (changes: Partial<RunSpec> = {}, version: string | null = '2.1.329', place: Partial<LaunchFacts> = {}) =>
  claudeLaunch(specOf(changes), {
    env: {},
    cwd: '/w',
    foldersAround: [],
    repositoryFolders: [],
    runDir: '/run/1',
    isRoot: true,
    firstStartDir: null,
    loginShell: '/bin/sh',
    version,
    mcpServers: {},
    skills: [],
    ...place,
  })

describe('claude is launched', () => {
  it('leaves the settings of the repository out where the lists have a say', () => {
    const folders = {
      cwd: '/home/ada/src/web',
      foldersAround: ['/home/ada/src/web', '/home/ada/src', '/home/ada', '/home', '/'],
      repositoryFolders: ['/home/ada/src/web', '/home/ada/src'],
    }
    const { args, env } = launch({}, '2.1.329', folders)
    expect(args.filter((arg) => /^--(setting-sources|add-dir)/.test(arg))).toEqual([
      '--setting-sources=user',
      '--add-dir=/home/ada/src/web',
      '--add-dir=/home/ada/src',
    ])
    expect(env).toHaveProperty('CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD', '1')
    const free = launch({ permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' } }, '2.1.329', folders)
    expect(free.args.join(' ')).not.toMatch(/setting-sources|add-dir/)
  })

  it('over pipes, with JSON lines both ways, asking svc before every tool', () => {
    const { file, args, io, env } = launch()
    expect({ file, io }).toEqual({ file: 'claude', io: 'pipes' })
    expect(args).toEqual(
      expect.arrayContaining([
        '-p',
        '--input-format=stream-json',
        '--output-format=stream-json',
        '--permission-prompt-tool=stdio',
      ]),
    )
    expect(args).toContain('--permission-mode=default')
    expect(args.join(' ')).not.toMatch(/bypass|dangerously/)
    expect(args.join(' ')).toContain('AskUserQuestion')
    expect(env).toMatchObject({ DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_MAX_RETRIES: '3' })
  })

  it('with nothing in its arguments that a spec does not ask for', () => {
    expect(launch().args.join(' ')).not.toMatch(/--model|--effort|--max-turns|--resume|--append|--fallback|--mcp/)
    expect(launch().files).toEqual([])
  })

  it('with what the spec asks for', () => {
    const { args, files } = launch({
      model: 'opus',
      backupModel: 'haiku',
      reasoningEffort: 'high',
      maxTurns: 7,
      agentMd: '# Ada',
    })
    expect(args).toEqual(
      expect.arrayContaining(['--model=opus', '--fallback-model=haiku', '--effort=high', '--max-turns=7']),
    )
    expect(args).toContain('--append-system-prompt-file=/run/1/AGENT.md')
    expect(files).toEqual([{ path: '/run/1/AGENT.md', content: '# Ada' }])
  })

  it("with the workspace's MCP servers in a file, as they were before the values of variables", () => {
    const raw = { type: 'stdio', command: 'files', args: ['${TOKEN}'] } as const
    const mcpServers = { files: { ...raw, args: [...raw.args] }, web: { type: 'http' as const, url: '${UNSET}' } }
    // The run host left `web` out.
    const given = { files: { ...raw, args: ['secret'] } }
    const { args, files, env } = launch({ mcpServers }, null, { mcpServers: given })
    expect(args).toContain('--mcp-config=/run/1/mcp.json')
    expect(args.at(-1)).not.toContain('--disallowedTools')
    expect(files).toEqual([{ path: '/run/1/mcp.json', content: JSON.stringify({ mcpServers: { files: raw } }) }])
    expect(JSON.stringify([args, env])).not.toContain('TOKEN')
    expect(env).toHaveProperty('ENABLE_TOOL_SEARCH', 'false')
    expect(launch({ mcpServers }).args.join(' ')).not.toContain('--mcp')
    expect(launch().env).not.toHaveProperty('ENABLE_TOOL_SEARCH')
  })

  it.each([
    ['none', 'low'],
    ['minimal', 'low'],
    ['low', 'low'],
    ['max', 'max'],
  ] as const)('with effort %s as %s', (reasoningEffort, expected) => {
    expect(launch({ reasoningEffort }).args).toContain(`--effort=${expected}`)
  })

  it('without the prompt or anything secret in its arguments', () => {
    const { args, env } = launch({ prompt: 'very private', agentMd: 'also private' })
    expect(JSON.stringify({ args, env })).not.toContain('private')
  })

  it('without a fallback that is the model itself, which claude refuses', () => {
    expect(launch({ model: 'opus', backupModel: 'opus' }).args.join(' ')).not.toContain('--fallback-model')
  })

  it('with the speed that was chosen, else as the person has it', () => {
    expect(launch({ speed: 'fast' }).args).toContain('--settings={"fastMode":true}')
    expect(launch({ speed: 'standard' }).args).toContain('--settings={"fastMode":false}')
    expect(launch({ speed: null }).args.join(' ')).not.toContain('--settings')
  })

  it('so that no value is read as a flag', () => {
    const { args } = launch({ model: '--dangerously-skip-permissions', resumeSessionId: '-x' })
    expect(args).not.toContain('--dangerously-skip-permissions')
    expect(args).not.toContain('-x')
  })

  it.each([
    ['2.1.329', true],
    ['2.2.0', true],
    ['2.1.328', false],
    ['2.1.197', false],
    [null, false],
  ])('to resume, with a fresh AGENT.md where version %s knows how: %s', (version, expected) => {
    const { args } = launch({ resumeSessionId: 's-1' }, version)
    expect(args).toContain('--resume=s-1')
    expect(args.includes('--system-prompt-snapshot=off')).toBe(expected)
  })
})

describe('versions', () => {
  it('are read from what a program says, and compared by number', () => {
    expect(versionIn('2.1.329 (Claude Code)\n')).toBe('2.1.329')
    expect(versionIn('command not found')).toBeNull()
    expect(isAtLeast('2.1.1000', '2.1.329')).toBe(true)
    expect(isAtLeast('2.0.999', '2.1.0')).toBe(false)
    expect(isAtLeast('3.0.0', '2.1.329')).toBe(true)
  })
})

describe('skills', () => {
  const text = 'Loop.\nSee ${CLAUDE_SKILL_DIR}/a.md.'
  const knots = { name: 'knots', description: 'Ties: "a" bowline.', body: text, folder: '/skills/$&', hasFiles: true }
  const settingsOf = (args: readonly string[]) => args.filter((arg) => arg.startsWith('--settings'))

  it('are a plugin of the run, with their names, descriptions and texts alone, and run nothing where lists have a say', () => {
    const { args, files } = launch({ speed: 'fast' }, null, { skills: [knots] })
    expect(args).toContain('--plugin-dir=/run/1/svc')
    expect(settingsOf(args)).toEqual(['--settings={"fastMode":true,"disableSkillShellExecution":true}'])
    const [file] = files
    expect(file?.path).toBe('/run/1/svc/skills/knots/SKILL.md')
    expect(file?.content.split('\n')).toEqual([
      '---',
      'name: "knots"',
      'description: "Ties: \\"a\\" bowline."',
      '---',
      expect.stringContaining('The files of this skill are in /skills/$&, '),
      '',
      'Loop.',
      'See /skills/$&/a.md.',
    ])
    const plain = launch({}, null, { skills: [{ ...knots, hasFiles: false }] })
    expect(plain.files[0]?.content).not.toContain('The files of this skill')
  })

  it('may run commands as claude has it where nobody restricts anything', () => {
    const full = { allow: [], ask: [], deny: [], defaultMode: 'full' } as const
    const { args } = launch({ permissions: { ...full, allow: [], ask: [], deny: [] } }, null, { skills: [knots] })
    expect(settingsOf(args)).toEqual([])
  })
})
