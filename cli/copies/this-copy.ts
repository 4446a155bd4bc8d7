import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { copyFile, copyKinds, type Copy } from '../../shared/releases/copy.ts'
import { installNames } from '../../shared/lib/stable-paths.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { programUrl } from '../../shared/lib/program-file.ts'
import { CliError } from '../errors/cli-error.ts'
import { readIfThere } from '../machine/files.ts'
import { textAt } from '../replies/fields.ts'

/** How the svc that runs here was put on this machine. */
export interface ThisCopy {
  /** `versions`: by `svc install`, beside others. `unpacked`: a tarball that was unpacked, and no more. */
  how: 'versions' | 'unpacked' | 'npm' | 'deb' | 'brew' | 'checkout'
  /** The folder of the whole copy. */
  folder: string
  /** The folder of its programs. */
  lib: string
  /** The folder of versions that it lies in; null: it lies in none. */
  prefix: string | null
  /** null: it was not made as a package. */
  copy: Copy | null
}

export function thisCopy(): ThisCopy {
  const lib = dirname(dirname(fileURLToPath(programUrl('cli'))))
  const folder = dirname(lib)
  const copy = readCopy(lib)
  const versions = dirname(folder)
  const prefix = versions.endsWith(`/${installNames.versions}`) ? dirname(versions) : null
  return { how: howOf(folder, prefix, copy), folder, lib, prefix, copy }
}

function howOf(folder: string, prefix: string | null, copy: Copy | null): ThisCopy['how'] {
  if (copy === null) return 'checkout'
  if (copy.kind !== 'tarball') return copy.kind
  if (/\/Cellar\/[^/]+\/[^/]+\//.test(`${folder}/`)) return 'brew'
  return prefix === null ? 'unpacked' : 'versions'
}

/** Reads what the build says of the copy whose programs are in this folder; null where it says nothing that can be read. */
export function readCopy(lib: string): Copy | null {
  const value = parseJsonText(readIfThere(`${lib}/${copyFile}`) ?? '')
  const [kind, version, commit] = ['kind', 'version', 'commit'].map((key) => textAt(value, key))
  const known = copyKinds.find((each) => each === kind)
  return known === undefined || version == null || commit == null ? null : { kind: known, version, commit }
}

/** Else its unit would start what is gone. */
const first = 'Where it runs as a service, type `svc device uninstall-service` first. Then'

const commands: Readonly<Record<Exclude<ThisCopy['how'], 'versions'>, { upgrade: string; uninstall: string }>> = {
  unpacked: {
    upgrade: 'Unpack the newer tarball and type `./install` in it.',
    uninstall: `${first} remove the folder that you unpacked.`,
  },
  npm: { upgrade: 'Type `npm install -g ./svc-VERSION.tgz`.', uninstall: `${first} type \`npm uninstall -g svc\`.` },
  deb: { upgrade: 'Type `sudo apt install ./svc_VERSION_ARCH.deb`.', uninstall: 'Type `sudo apt remove svc`.' },
  brew: { upgrade: 'Type `brew upgrade svc`.', uninstall: `${first} type \`brew uninstall svc\`.` },
  checkout: {
    upgrade: 'Type `git pull` in it; the next `svc` makes a release of what it then has.',
    uninstall: `${first} remove the checkout.`,
  },
}

const origins: Readonly<Record<Exclude<ThisCopy['how'], 'versions'>, string>> = {
  unpacked: 'was unpacked and not installed',
  npm: 'was installed by npm',
  deb: 'was installed by a Debian package',
  brew: 'was installed by Homebrew',
  checkout: 'runs from a checkout',
}

/** Returns the folder of versions that this copy lies in. Fails with what to type instead, where another program takes care of it. */
export function demandPrefix(copy: ThisCopy, act: 'upgrade' | 'uninstall'): string {
  if (copy.how === 'versions' && copy.prefix !== null) return copy.prefix
  const how = copy.how === 'versions' ? 'unpacked' : copy.how
  const place = how === 'checkout' ? checkoutOf(copy.lib) : copy.folder
  throw new CliError('installed_otherwise', `This svc ${origins[how]} (${place}).`, {
    remediation: commands[how][act],
  })
}

/** Its programs run as they are there, or from a release that was made of it. */
const checkoutOf = (lib: string): string => /^(.*)\/\.cache\/releases\/[^/]+$/.exec(lib)?.[1] ?? lib
