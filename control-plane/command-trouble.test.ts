import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { becomeNobody } from '../test/kit/nobody.ts'

test('an operator is told which file their account may not use, and who may', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-trouble-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'backup.tar'), '', { mode: 0o000 })
  const code = `import { troubleFor } from ${JSON.stringify(join(import.meta.dirname, 'command-trouble.ts'))}
  import { openSync } from 'node:fs'
  ${becomeNobody}
  try { openSync('backup.tar') } catch (error) { console.log(troubleFor(error)) }`
  const said = execFileSync(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: folder,
    encoding: 'utf8',
  })
  expect(said).toBe(
    'backup.tar may not be used by this user (EACCES): type the command as the user that owns it, or name another place.\n',
  )
})
