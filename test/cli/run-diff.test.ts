import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeSet } from '../../shared/device/change-set.ts'
import { gitIn, lines, repoAt, runIn, scriptIn, tempDir, tempRepo } from '../process/change-set/repo.ts'
import { refusal } from './api-server.ts'
import { onTerminal } from './on-terminal.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

// `svc run diff`: a patch for git in a pipe, and a page for a person on a terminal.

let home: ServedHome
beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const replyOf = (changeSet: ChangeSet, more: object = {}) => ({
  body: { ...changeSet, runId, live: false, sharedWith: [], capturedAt: '2026-01-02T03:04:05.678Z', ...more },
})
const diff = async (reply: object, ...flags: string[]) =>
  home.svc(['run', 'diff', runId, ...flags], { env: await home.inRun(() => reply) })

const newline = 'new\nline/a "quoted" \\ name.txt'
const odd = ['with space/a b.txt', '"quotes".txt', 'tab\there', newline, 'ünï/日本語.md', 'b/b b/b', '-dash', ' lead ']

/** A change of each kind, in files with names of each kind; and the tree that it makes. */
async function oddChange() {
  const repo = tempRepo()
  for (const name of odd) repo.write(name, lines(name.slice(0, 3), 5))
  repo.write('moved from "here"', lines('moved', 30))
  repo.write('gone ü', 'gone\n')
  repo.write('run me', 'x\n')
  repo.commit()
  const before = scriptIn(repo.dir, 'git rev-parse HEAD').trim()
  const changeSet = await runIn(repo, () => {
    for (const name of odd)
      repo.write(name, `${lines(name.slice(0, 3), 4)}--- a/changed\n+++ b/changed\r\ndiff --git a/x b/x`)
    mkdirSync(join(repo.dir, 'to ü'))
    renameSync(join(repo.dir, 'moved from "here"'), join(repo.dir, 'to ü/moved\n'))
    repo.remove('gone ü')
    repo.executable('run me')
    repo.write('empty file', '')
    repo.write('picture.bin', Buffer.from([1, 0, 9, 0, 3]))
    repo.write('latin1', Buffer.from('caf\xe9\n', 'latin1'))
    repo.remove('src/b.ts')
    repo.link('src/b.ts', 'a.ts')
  })
  return { repo, before, changeSet }
}

/** The tree that git makes of the commit by the patch. */
function treeOf(patch: string, { repo, before }: { repo: { dir: string }; before: string }): string {
  const script = 'git checkout -q "$1"; git apply --index --whitespace=nowarn -; git write-tree'
  const copy = join(tempDir(), 'copy')
  gitIn(repo.dir, ['clone', '-q', '--no-hardlinks', repo.dir, copy])
  return scriptIn(copy, script, { args: [before], input: patch }).trim()
}

/** The files of which git reads in the patch; one that is moved by its last name. */
const filesIn = (patch: string, { repo }: { repo: { dir: string } }): string[] =>
  gitIn(repo.dir, ['apply', '--numstat', '-z', '-'], {}, patch)
    .split('\0')
    .slice(0, -1)
    .map((line) => line.replace(/^[^\t]*\t[^\t]*\t/, ''))
    // One that became a link was removed and made anew.
    .filter((name, at, all) => name !== all[at - 1])

describe('in a pipe', () => {
  test('it is a patch that git applies, whatever the files are called', async () => {
    const change = await oddChange()
    const { status, stdout, stderr } = await diff(replyOf(change.changeSet))
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toBe(change.changeSet.diff)
    expect(treeOf(stdout, change)).toBe(scriptIn(change.repo.dir, 'git add -A; git write-tree').trim())
  })

  test('paths narrow it to what changed in these files and folders; of a renamed file both of its places count', async () => {
    const change = await oddChange()
    const reply = replyOf(change.changeSet)
    for (const name of odd) {
      const { stdout } = await diff(reply, '--', name)
      expect(filesIn(stdout, change), name).toEqual([name])
    }
    expect(filesIn((await diff(reply, './ünï/', '"quotes".txt')).stdout, change)).toEqual([
      '"quotes".txt',
      'ünï/日本語.md',
    ])
    for (const place of ['to ü', 'moved from "here"'])
      expect(filesIn((await diff(reply, place)).stdout, change), place).toEqual(['to ü/moved\n'])
    for (const name of ['run me', 'empty file', 'gone ü', 'picture.bin', 'latin1', 'src'])
      expect(filesIn((await diff(reply, name)).stdout, change), name).toEqual([name === 'src' ? 'src/b.ts' : name])
    const narrow = JSON.parse((await diff(reply, 'run me', 'ünï', '--json')).stdout)
    expect(narrow).toMatchObject({
      runId,
      additions: 3,
      deletions: 1,
      files: [{ path: 'run me' }, { path: 'ünï/日本語.md' }],
    })
    const none = await diff(reply, 'un')
    expect([none.status, none.stdout, none.stderr]).toEqual([0, '', 'svc: the run changed nothing in un.\n'])
    expect((await diff(reply, '.')).stdout).toBe(change.changeSet.diff)
  })

  test('--name-only prints a line for each file, --stat how much of each changed', async () => {
    const { changeSet } = await oddChange()
    const names = (await diff(replyOf(changeSet), '--name-only')).stdout.split('\n').slice(0, -1)
    expect(names).toHaveLength(changeSet.files.length)
    expect(names).toEqual(
      expect.arrayContaining([
        'with space/a b.txt',
        JSON.stringify('"quotes".txt'),
        JSON.stringify(newline),
        'ünï/日本語.md',
      ]),
    )
    const { stdout } = await diff(replyOf(changeSet), '--stat', 'src', 'picture.bin', 'to ü', './-dash')
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^ -dash +\|   4 \+\+\+-$/),
      expect.stringMatching(/^ picture\.bin +\| Bin$/),
      expect.stringMatching(/^ src\/b\.ts +\|  21 \+-{20}$/),
      String.raw` "moved from \"here\"" => "to ü/moved\n" |   0`,
      ' 4 files changed, 4 insertions(+), 21 deletions(-)',
      '',
    ])
    const both = await diff(replyOf(changeSet), '--stat', '--name-only')
    expect([both.status, both.stderr]).toEqual([2, expect.stringContaining('cannot be given together')])
  })

  test('what is to be known of it stands on standard error, so that it stays a patch', async () => {
    const { changeSet } = await oddChange()
    const [first, ...others] = changeSet.files
    const files = [{ ...first!, patchOmitted: true }, ...others]
    const shared = ['run_2bX7mR4kJ9sQ1wZe', 'run_9sQ1wZe2bX7mR4kJ']
    const { stdout, stderr } = await diff(replyOf({ ...changeSet, files }, { live: true, sharedWith: shared }))
    expect(stdout).toBe(changeSet.diff)
    expect(stderr.split('\n')).toEqual([
      'svc: the run still works; this is what it has changed until now.',
      `svc: changes of others may be among these: ${shared.join(', ')} worked in the folder at the same time.`,
      expect.stringContaining(`svc: not in the diff, since too large or not readable: ${first!.path}`),
      '',
    ])
    // A server of before says nothing of others.
    expect((await diff(replyOf(changeSet, { sharedWith: undefined }))).stderr).toBe('')
    const nothing = await diff(replyOf({ ...changeSet, files: [], diff: '' }))
    expect([nothing.status, nothing.stdout, nothing.stderr]).toEqual([0, '', 'svc: the run changed nothing.\n'])
  })

  test('where there is no change-set it says why, and what there is', async () => {
    const env = await home.inRun(() => refusal(413, 'too_large', { message: 'More than 2000 files changed.' }))
    const plain = await home.svc(['run', 'diff', 'current'], { env })
    expect([plain.status, plain.stdout]).toEqual([1, ''])
    expect(JSON.parse(plain.stderr).error.code).toBe('too_large')
    const { status, stdout, stderr } = await home.svc(['run', 'diff', 'current', '-o', 'table'], { env })
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toContain('More than 2000 files changed.')
    expect(stderr).toContain(`\`svc run read ${runId} --full\``)
    const unknown = await home.svc(['run', 'diff', runId, '-o', 'table'], {
      env: await home.inRun(() => refusal(404, 'resource_not_found')),
    })
    expect(unknown.stderr).not.toContain('svc run read')
  })

  test('--color always adds the colours of git and nothing else', async () => {
    const { changeSet } = await oddChange()
    const { stdout } = await diff(replyOf(changeSet), '--color', 'always')
    expect(stdout).toContain('\u001b[32m+--- a/changed\u001b[0m\n')
    expect(stdout).toContain('\u001b[1m--- a/-dash\u001b[0m\n')
    expect(stripVTControlCharacters(stdout)).toBe(changeSet.diff)
  })
})

describe('on a terminal', () => {
  const hostile = 'hidden \u001b[8mline\u001b[2J \u202egnp.exe'
  const patch = ['diff --git a/x b/x', '--- a/x', '+++ b/x', '@@ -1 +1 @@', '-before', `+${hostile}`, ''].join('\n')

  async function shown(flags: readonly string[], env: Record<string, string>, text = patch) {
    const file = {
      path: 'x',
      oldPath: null,
      status: 'modified',
      binary: false,
      additions: 1,
      deletions: 1,
      patchOmitted: false,
    }
    const { url: server } = await home.serve(() => ({
      body: {
        runId,
        files: [file],
        additions: 1,
        deletions: 1,
        diff: text,
        live: false,
        sharedWith: ['run_2bX7mR4kJ9sQ1wZe'],
      },
    }))
    mkdirSync(join(home.dir, 'config'), { recursive: true })
    writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server, token: 'svc_pat_x' }))
    const terminal = onTerminal({ dir: home.dir, env: { ...home.env, ...env } }, ['run', 'diff', runId, ...flags], 80)
    expect(await terminal.ended).toBe(0)
    return terminal.shown.text
  }

  test('it has colours, and shows what a file would hide from its reader', async () => {
    const text = await shown([], {})
    expect(text).toContain('\u001b[38;5;28m+hidden ^[[8mline^[[2J <U+202E>gnp.exe\u001b[0m')
    expect(text).toContain('\u001b[38;5;167m-before\u001b[0m')
    // It is broken between words.
    expect(text.replaceAll(/\s+/g, ' ')).toContain('run_2bX7mR4kJ9sQ1wZe worked in the folder at the same time')
    expect(await shown([], { NO_COLOR: '1' })).not.toContain('\u001b[')
    expect(await shown(['--color', 'never'], {})).not.toContain('\u001b[')
  })

  test('what is longer than the screen goes through the pager', async () => {
    const long = patch + Array.from({ length: 60 }, (_, at) => `+line ${at}\n`).join('')
    const paged = await shown([], { SVC_PAGER: 'sed s/^/paged:/' }, long)
    expect(paged).toContain('paged:\u001b[38;5;28m+line 59')
    expect(await shown([], { SVC_PAGER: 'sed s/^/paged:/' })).not.toContain('paged:')
  })
})

test('the names of a repository that is none of git’s usual ones are read, too', async () => {
  // A name that is no UTF-8 stays as git quotes it.
  const repo = repoAt(tempRepo().dir)
  const changeSet = await runIn(repo, () => {
    writeFileSync(Buffer.concat([Buffer.from(`${repo.dir}/caf`), Buffer.from([0xe9])]), 'x\n')
    repo.write('other', 'x\n')
  })
  const path = String.raw`"caf\351"`
  expect(changeSet.files.map((file) => file.path)).toContain(path)
  const { stdout } = await diff(replyOf(changeSet), path)
  expect(stdout.match(/^diff --git .*$/gm)).toEqual([String.raw`diff --git "a/caf\351" "b/caf\351"`])
})
