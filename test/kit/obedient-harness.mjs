// An agent that does all that its prompt says and nothing else: it types each command of svc that the prompt has, in its order. What
// it records fits the schemas of the built-in programs: its first review in a folder asks for a change, later ones approve. What a
// prompt asks it to mend is mended, which the file `mended` shows. It says what it did, and fails with the first command that fails.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const prompt = readFileSync(process.env.SVC_PROMPT_FILE, 'utf8')
if (prompt.includes('Mend the cause')) writeFileSync('mended', '')

function recorded() {
  const isFirst = !existsSync('reviewed')
  writeFileSync('reviewed', '')
  return JSON.stringify(
    isFirst ? { verdict: 'request_changes', findings: ['a.ts: no test'] } : { verdict: 'approve', findings: [] },
  )
}

const typed = []
for (const [, command] of prompt.matchAll(/`(svc [^`]+)`/g)) {
  const line = command.replace("'...'", () => `'${recorded()}'`)
  const { status, stderr } = spawnSync('sh', ['-c', line], { encoding: 'utf8' })
  if (status !== 0) {
    process.stdout.write(`${line} failed: ${stderr}\n`)
    process.exit(status ?? 1)
  }
  typed.push(line.split(' ').slice(0, 3).join(' '))
}
process.stdout.write(`Did as I was told: ${typed.join(', ')}.\n`)
