import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bring } from '../../../device-manager/clone/bring.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { repeats } from '../../kit/forms.ts'
import { gitDoor, password, run } from './git-kit.ts'

/** What a host that packs says nothing for. A minute of the broker is a second; git has its own clock. */
const silentMs = repeats('GIT_SILENT_MS', { short: 3_000, long: 75_000 })
const brokersWorld = { ...realWorld, after: (ms: number, act: () => void) => realWorld.after(ms / 60, act) }

/** All that comes until the answer ends or breaks off. */
async function ask(url: string): Promise<{ body: string }> {
  const body = fetch(`${url}/info/refs?service=git-upload-pack`).then((answer) => answer.text())
  return { body: await body.catch(() => '') }
}

describe('git behind the broker', () => {
  test('fetches and pushes with a credential that it does not have', async () => {
    const { url, repo, git, clone, counted, server } = await gitDoor()
    await clone()
    await git(['checkout', '-q', '-b', 'svc/ENG-1'])
    for (const text of ['one', 'two']) {
      writeFileSync(join(git.folder, 'a'), text)
      await git(['commit', '-qam', text])
      await git(['push', '-q', 'origin', 'svc/ENG-1'])
    }
    const head = await git(['rev-parse', 'HEAD'])
    expect(repo.git(['rev-parse', 'refs/heads/svc/ENG-1'])).toBe(head)
    expect(await git(['ls-remote', url])).toContain(head)
    expect(server.requests.every((line) => line.includes('/web/'))).toBe(true)
    const rows = await counted()
    expect(rows).toEqual([{ host: '127.0.0.1', decision: 'allowed', requests: expect.any(Number) as number }])
    expect(rows[0]!.requests).toBeGreaterThan(8)
  })

  test('pushes what is larger than one packet, after it has asked whether it may', async () => {
    const { repo, git, clone } = await gitDoor()
    await clone()
    await git(['checkout', '-q', '-b', 'svc/ENG-1'])
    writeFileSync(join(git.folder, 'large'), Buffer.from(Array.from({ length: 3_000_000 }, () => Math.random() * 256)))
    await git(['add', '.'])
    await git(['commit', '-qm', 'large'])
    await git(['push', '-q', 'origin', 'svc/ENG-1'])
    // Forward from what is there, with the large file in the pack behind its commit.
    writeFileSync(join(git.folder, 'large2'), Buffer.from(Array.from({ length: 3_000_000 }, () => Math.random() * 256)))
    await git(['add', '.'])
    await git(['commit', '-qm', 'more'])
    await git(['push', '-q', 'origin', 'svc/ENG-1'])
    expect(repo.git(['rev-parse', 'refs/heads/svc/ENG-1'])).toBe(await git(['rev-parse', 'HEAD']))
  })

  test('waits for minutes for a host that packs before it says a word', { timeout: 60_000 + silentMs }, async () => {
    const world = silentMs < 10_000 ? brokersWorld : realWorld
    const { url, repo, server, root } = await gitDoor({ world })
    let asked = 0
    server.before = async ({ method }) => {
      // It is asked for its branches twice before.
      if (method === 'POST' && ++asked === 3) await realWorld.sleep(silentMs)
    }
    const folder = join(root, 'clone')
    const committer = { name: 'a', email: 'a@example.com' }
    await bring({ do: 'bring', url, folder, address: url, branch: 'svc/ENG-1', baseBranch: 'main', committer })
    expect(repo.git(['rev-parse', 'main'])).toBe(await run('git', ['rev-parse', 'HEAD'], { cwd: folder, env: {} }))
    expect(asked).toBeGreaterThanOrEqual(3)
  })

  test('goes forward over hundreds of commits that are alike, and over a merge', async () => {
    const { repo, git, clone } = await gitDoor()
    await clone()
    await git(['checkout', '-q', '-b', 'svc/ENG-1'])
    await git(['commit', '-q', '--allow-empty', '-m', 'first'])
    await git(['push', '-q', 'origin', 'svc/ENG-1'])
    const text = 'the same words in each of them, so that git packs one as what differs from another\n'.repeat(20)
    const script = 'for i in $(seq 300); do git commit -q --allow-empty -m "$i $TEXT"; done'
    await run('bash', ['-c', script], { cwd: git.folder, env: { ...git.env, TEXT: text } })
    await git(['checkout', '-q', '-b', 'side', 'main'])
    await git(['commit', '-q', '--allow-empty', '-m', 'side'])
    await git(['checkout', '-q', 'svc/ENG-1'])
    await git(['merge', '-q', '--no-edit', 'side'])
    await git(['push', '-q', 'origin', 'svc/ENG-1'])
    expect(repo.git(['rev-parse', 'refs/heads/svc/ENG-1'])).toBe(await git(['rev-parse', 'HEAD']))
  })

  test('lets a run replace what it rescued before, on its own rescue branch', async () => {
    const { repo, git, clone } = await gitDoor()
    await clone()
    for (const text of ['one', 'two']) {
      await git(['checkout', '-q', '--detach', 'origin/main'])
      await git(['commit', '-q', '--allow-empty', '-m', text])
      await git(['push', '-q', 'origin', '+HEAD:refs/heads/svc/rescue/run_1'])
    }
    expect(repo.git(['log', '-1', '--format=%s', 'svc/rescue/run_1'])).toBe('two')
  })

  test.each<[name: string, args: string[], why: RegExp]>([
    ['another branch', ['push', 'origin', 'HEAD:refs/heads/main'], /may push to svc\/ENG-1 alone/],
    ['a new branch of another name', ['push', 'origin', 'HEAD:refs/heads/svc/ENG-10'], /may push to svc\/ENG-1 alone/],
    ['the rescue branch of another run', ['push', 'origin', 'HEAD:refs/heads/svc/rescue/run_2'], /alone/],
    ['a tag', ['push', 'origin', 'HEAD:refs/tags/v1'], /alone/],
    ['a ref that is no branch', ['push', 'origin', 'HEAD:refs/pull/1/head'], /alone/],
    ['settings of the repository', ['push', 'origin', 'HEAD:refs/meta/config'], /alone/],
    ['the deletion of its branch', ['push', 'origin', ':refs/heads/svc/ENG-1'], /deletes no branch/],
    ['the deletion of another branch', ['push', 'origin', ':refs/heads/main'], /alone|deletes/],
    ['its branch by force', ['push', '--force', 'origin', 'HEAD:refs/heads/svc/ENG-1'], /only moves forward/],
    [
      'all at once, with one that it may',
      ['push', '--atomic', 'origin', '+HEAD:refs/heads/svc/ENG-1', 'HEAD:refs/heads/x'],
      /alone/,
    ],
    ['options', ['push', '-o', 'ci.skip', 'origin', 'HEAD:refs/heads/svc/rescue/run_1'], /options that the broker/],
    ['a mirror', ['push', '--mirror', 'origin'], /alone|deletes/],
  ])('refuses to push %s', async (_name, args, why) => {
    const { repo, git, clone } = await gitDoor()
    repo.git([
      'update-ref',
      'refs/heads/svc/ENG-1',
      repo.git(['commit-tree', `${repo.git(['rev-parse', 'main'])}^{tree}`, '-m', 'there']),
    ])
    repo.git(['config', 'receive.advertisePushOptions', 'true'])
    await clone()
    await git(['commit', '-q', '--allow-empty', '-m', 'mine'])
    const before = repo.git(['for-each-ref'])
    const error = await git(args).catch((reason: Error) => reason)
    expect(String(error)).toMatch(why)
    expect(repo.git(['for-each-ref'])).toBe(before)
  })

  test('a branch that the git host calls its own, whoever named it for the run, and also as its first push', async () => {
    const { repo, git, clone, server } = await gitDoor({ permit: { branch: 'main' } })
    await clone()
    await git(['commit', '-q', '--allow-empty', '-m', 'mine'])
    const before = repo.git(['rev-parse', 'main'])
    const push = () => git(['push', '-q', 'origin', 'HEAD:refs/heads/main'])
    await expect(push()).rejects.toThrow(/main is what the git host calls the branch of the repository itself/)
    expect(repo.git(['rev-parse', 'main'])).toBe(before)
    await git(['push', '-q', 'origin', 'HEAD:refs/heads/svc/rescue/run_1'])
    expect(repo.git(['log', '-1', '--format=%s', 'svc/rescue/run_1'])).toBe('mine')
    // One that does not say which it is cannot be pushed to.
    const other = await gitDoor({ permit: { branch: 'main' } })
    await other.clone()
    await other.git(['commit', '-q', '--allow-empty', '-m', 'mine'])
    other.server.answer = (request, response) =>
      request.url?.endsWith('service=git-upload-pack') === true && response.writeHead(503).end() !== null
    await expect(other.git(['push', '-q', 'origin', 'HEAD:refs/heads/main'])).rejects.toThrow(/502|503/)
    expect(server.requests.filter((line) => line.includes('upload-pack')).length).toBeGreaterThan(0)
  })

  test('nothing where the branch of the run is the one that another name is the own of', async () => {
    const { repo, git, clone } = await gitDoor({ permit: { branch: 'release' } })
    repo.commit({ a: 'base' }, 'release')
    await clone()
    await git(['checkout', '-q', 'release'])
    await git(['commit', '-q', '--allow-empty', '-m', 'mine'])
    await git(['push', '-q', 'origin', 'release'])
    expect(repo.git(['log', '-1', '--format=%s', 'release'])).toBe('mine')
    // An empty repository has none yet.
    const empty = await gitDoor({ permit: { branch: 'main' } })
    empty.repo.git(['update-ref', '-d', 'refs/heads/main'])
    await empty.clone()
    await empty.git(['checkout', '-q', '--orphan', 'main'])
    await empty.git(['commit', '-q', '--allow-empty', '-m', 'first'])
    await empty.git(['push', '-q', 'origin', 'main'])
    expect(empty.repo.git(['log', '-1', '--format=%s', 'main'])).toBe('first')
  })

  test('a run that is over may rescue, and push no more', async () => {
    const { repo, git, clone } = await gitDoor({ permit: { branch: null } })
    await clone()
    await git(['commit', '-q', '--allow-empty', '-m', 'mine'])
    await expect(git(['push', 'origin', 'HEAD:refs/heads/svc/ENG-1'])).rejects.toThrow(
      /may push to svc\/rescue\/run_1 alone/,
    )
    await git(['push', '-q', 'origin', 'HEAD:refs/heads/svc/rescue/run_1'])
    expect(repo.git(['rev-parse', 'svc/rescue/run_1'])).toBe(await git(['rev-parse', 'HEAD']))
  })

  test.each([
    ['without a credential', { credential: null }, /without a credential/],
    ['with another one', { credential: { user: 'git', secret: 'wrong' } }, /lets nobody in with the credential/],
  ])('says that a git host lets nobody in %s', async (_name, { credential }, why) => {
    const { clone } = await gitDoor({ permit: { credential: async () => credential } })
    await expect(clone()).rejects.toThrow(why)
  })

  test('follows no git host to another address, and takes nothing from it that git does not say', async () => {
    const { server, clone } = await gitDoor()
    server.answer = (_request, response) => {
      response.writeHead(301, { location: 'http://169.254.169.254/' }).end()
      return true
    }
    await expect(clone()).rejects.toThrow(/at another address/)
    server.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>')
      return true
    }
    await expect(clone()).rejects.toThrow(/did not answer as one does/)
  })

  test('cuts off an answer in which the credential stands, and one without an end', async () => {
    const { server, git, url, clone } = await gitDoor({ limits: { answerBytes: 100_000 } })
    await clone()
    const type = 'application/x-git-upload-pack-advertisement'
    for (const form of ['told', 'sent'] as const) {
      server.answer = ({ headers: { authorization = '' } }, response) => {
        const text = form === 'told' ? password : authorization.slice('Basic '.length)
        response.writeHead(200, { 'content-type': type }).end(`# ${text}`)
        return true
      }
      const { body } = await ask(url)
      expect(body).not.toMatch(/s3cr3t|Z2l0On/)
    }
    server.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': type })
      const more = () => response.write(Buffer.alloc(50_000, 'x'), () => setImmediate(more))
      more()
      return true
    }
    await expect(git(['ls-remote', url])).rejects.toThrow(/unable to access|early EOF|hung up|protocol/)
  })
})
