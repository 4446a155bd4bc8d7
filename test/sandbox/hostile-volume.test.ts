import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isLong } from '../kit/forms.ts'
import { cloudServer, endedRun, hasNoEngine } from '../kit/sandboxes.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'

// What a run may do to its volume before its sandbox is gone: whoever salvages it tells what it can, says what is lost, follows no link
// out of it, and the volume goes.

const inSandbox = (name: string) => `${sandboxPlaces.work}/${name}`
const [runner, home, other] = [inSandbox('runner'), inSandbox('home'), inSandbox('other')]
/** Ends the runner, and with it the sandbox. */
const die = 'sleep 1; kill -9 $(cat /proc/1/task/1/children)'
const files = `find ${runner} -type f`
const each = (act: string) => `for f in $(${files}); do ${act}; done`
const program = (text: string) => `node -e "const fs=require('fs');${text}"`
const count = isLong ? 1_000_000 : 30_000

/** What the run does before its end. */
const short: Readonly<Record<string, string>> = {
  'a state of garbage': each('head -c 5000 /dev/urandom >$f'),
  'a state of links to files of the image': each('rm $f; ln -s /etc/passwd $f'),
  'a state of pipes': each('rm $f; mkfifo $f'),
  [`a home of ${count} files`]: program(
    `for(let f=0;f<${count};f++){if(f%1000===0)fs.mkdirSync('d'+f);fs.writeFileSync('d'+(f-f%1000)+'/'+f,'')}`,
  ),
}
const long: Readonly<Record<string, string>> = {
  'a state that is a link out of it': `mv ${runner} ${other}; ln -s / ${runner}`,
  'a state of links to what never ends': each('rm $f; ln -s /dev/zero $f'),
  'a state of links that lead nowhere': each('rm $f; ln -s $f $f'),
  'a state of files of 1 TiB': each('truncate -s 1T $f'),
  'a state of folders': each('rm $f; mkdir $f'),
  'a state that nobody may enter': `chmod 000 ${runner}`,
  'a state that nobody may write to': `chmod -R 500 ${runner}`,
  'a state that is a file': `mv ${runner} ${other}; echo x >${runner}`,
  'a state that is a pipe': `mv ${runner} ${other}; mkfifo ${runner}`,
  'a state that is gone': `rm -rf ${runner}`,
  'a home that nobody may enter': `mkdir -p a/b; touch a/b/c; chmod 000 a/b a; cd /; chmod 000 ${home}`,
  'a home that is a link out of it': `cd /; mv ${home} ${other}; ln -s / ${home}`,
  'deep folders': program("for(let d=0;d<5000;d++){fs.mkdirSync('d');process.chdir('d')}"),
  'names that are no text': program(
    "for(const n of ['a\\nb','-rf',' ','\\x1b[2J','*'])fs.writeFileSync(n,'');fs.writeFileSync(Buffer.from([0xff,0xfe,0x0a]),'')",
  ),
}
const forms = isLong ? { ...short, ...long } : short

test.skipIf(hasNoEngine)(
  'whatever a run did to its volume, it ends, and nothing of it stays or goes with it',
  { timeout: 600_000 },
  async () => {
    const outside = mkdtempSync(join(tmpdir(), 'svc-o-'))
    onTestFinished(() => rmSync(outside, { recursive: true, force: true }))
    writeFileSync(join(outside, 'file'), 'of the host')
    const server = await cloudServer()
    const runs: { form: string; runId: string }[] = []
    for (const [form, acts] of Object.entries(forms)) {
      const command = `ln -s ${outside} out; ln -s / root; echo here; ${acts}; cd /; ${die}; sleep 60`
      const agent = { environment: 'cloud', harness: 'command', toolPermissionMode: 'full', command }
      const { id } = await server.createAgent(agent)
      runs.push({ form, runId: await server.startRun(id as string, { prompt: 'go' }) })
    }
    for (const { form, runId } of runs) {
      const run = await endedRun(server, runId, 400_000)
      const { data } = (await server.ok(`/runs/${runId}/events?limit=200`)) as { data: { seq: number; kind: string }[] }
      const errorMessage = String(run['errorMessage'])
      const ended = { form, isWhole: data.at(-1)?.kind === 'ended', status: run['status'], errorMessage }
      expect({ ...ended, seqs: data.map(({ seq }) => seq) }).toEqual({
        ...ended,
        status: 'failed',
        seqs: data.map((_, at) => at + 1),
      })
      // A runner that finds its own state spoilt before it dies ends the run itself.
      if (run['exitReason'] === 'crashed') expect(form).toMatch(/^a state/)
      else {
        expect({ ...ended, exitReason: run['exitReason'] }).toEqual({ ...ended, exitReason: 'sandbox_lost' })
        // One of these sentences, and nothing of what programs print when they fail. SIGBUS (135) is the end of a runner whose memory,
        // which it shares with a file of its state, is cut off.
        const status = form.startsWith('a state') ? '13[57]' : '137'
        const left = ended.isWhole ? '' : ' Nothing of the run is left on its volume\\.'
        expect(errorMessage).toMatch(new RegExp(`^The sandbox of this run ended with status ${status}\\.${left}$`))
      }
      if (!form.startsWith('a state')) expect(ended).toMatchObject({ isWhole: true })
    }
    expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('of the host')
    expect(readdirSync(outside)).toEqual(['file'])
    expect((await server.call('/agents')).status).toBe(200)
  },
)
