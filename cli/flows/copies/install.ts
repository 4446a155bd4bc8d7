import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Flow } from '../../context/context.ts'
import { linkProgram, Prefix, refuseTaken } from '../../copies/prefix.ts'
import { thisCopy } from '../../copies/this-copy.ts'
import { tryCopy } from '../../copies/trial.ts'
import { CliError } from '../../errors/cli-error.ts'
import { programNames } from '../../../shared/releases/copy.ts'
import { afterEarlierSwitch, afterSwitch } from './after-switch.ts'

/** `install`: puts the copy that was unpacked beside others, makes it the one that runs, and leads the programs' names to it. */
export const install: Flow = async (context) => {
  const { out, values, resolvePath } = context
  const { folder, copy } = thisCopy()
  if (copy === null || !existsSync(join(folder, 'node/bin/node')))
    throw new CliError('not_installable', 'Only a copy of svc that was unpacked from a tarball can be installed.', {
      remediation: 'Unpack svc-VERSION-PLATFORM.tar.gz and type `./install` in its folder.',
    })
  const isRoot = process.getuid?.() === 0
  const pathOf = (flag: string, usual: string) => {
    const given = values.local[flag]
    return typeof given === 'string' ? resolvePath(given) : usual
  }
  const prefix = new Prefix(pathOf('prefix', isRoot ? '/opt/svc' : join(homedir(), '.local/opt/svc')))
  const bin = pathOf('bin', isRoot ? '/usr/local/bin' : join(homedir(), '.local/bin'))
  const links = values.local['without-links'] === true ? [] : programNames.map((name) => join(bin, name))
  prefix.refuseOthers()
  for (const link of links) refuseTaken(link, prefix.folder)
  const result = await prefix.alone(async () => {
    await tryCopy(folder, copy.version)
    const before = prefix.copyAt('current')
    const name = prefix.keep(prefix.copied(folder), copy)
    const changed = prefix.switchTo(name)
    for (const [index, link] of links.entries())
      linkProgram(link, { to: prefix.program(programNames[index]!), prefix: prefix.folder })
    return {
      changed,
      version: copy.version,
      before: before?.version ?? null,
      folder: prefix.folder,
      bin: links.length === 0 ? null : bin,
      ...(await (changed ? afterSwitch(prefix, context) : afterEarlierSwitch(prefix, copy.version, context))),
    }
  })
  if (result.bin !== null && !(process.env['PATH'] ?? '').split(delimiter).includes(bin))
    out.message(
      `svc: ${bin} is not on your PATH. Type: export PATH="${bin}:$PATH"; a shell that you open later needs it, too.`,
    )
  await out.result(result, { look: 'install' })
}
