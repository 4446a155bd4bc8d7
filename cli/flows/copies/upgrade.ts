import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compare } from 'semver'
import type { CommandContext, Flow } from '../../context/context.ts'
import { keptNames, Prefix } from '../../copies/prefix.ts'
import { fetchVerified, sourceOf, verifiedManifest, type ReleaseSource } from '../../copies/release-source.ts'
import { demandPrefix, thisCopy } from '../../copies/this-copy.ts'
import { tryCopy, unpack } from '../../copies/trial.ts'
import { CliError, usageError } from '../../errors/cli-error.ts'
import { readIfThere } from '../../machine/files.ts'
import { readFileOrInput } from '../../machine/input.ts'
import { copyKeyFile } from '../../../shared/releases/copy.ts'
import type { ReleasedFile, ReleaseManifest } from '../../../shared/releases/manifest.ts'
import { afterEarlierSwitch, afterSwitch } from './after-switch.ts'

/**
 * `upgrade`: installs a release beside the one that runs, once it is verified and was tried, and makes it the one that runs; `--rollback`
 * returns to the one before. What is compared is the installed version: this process may be of an earlier one.
 */
export const upgrade: Flow = async (context) => {
  const { env, out, values } = context
  if (env.runId !== null)
    throw new CliError('not_in_a_run', 'svc is not upgraded from within a run.', {
      remediation: 'A person types it, outside of runs.',
    })
  const copy = thisCopy()
  const prefix = new Prefix(demandPrefix(copy, 'upgrade'))
  if (values.local['rollback'] === true) return rollBack(prefix, context)
  const source = releases(prefix, context)
  const key = await trustedKey(prefix, copy.lib, context)
  const release = await verifiedManifest(source, key)
  if (values.local['check'] === true) {
    await out.result({ changed: false, ...comparedWithCurrent(prefix, release) }, { look: 'upgrade' })
    return
  }
  // Compared by whoever has the lock: another one may have installed something meanwhile.
  const result = await prefix.alone(async () => {
    const compared = comparedWithCurrent(prefix, release)
    if (compared.version === compared.before)
      return { changed: false, ...compared, ...(await afterEarlierSwitch(prefix, compared.version, context)) }
    if (!compared.isNewer && values.local['allow-older'] !== true)
      throw new CliError('older_release', `${compared.version} is older than ${compared.before}, which is installed.`, {
        remediation: 'To return to the version before type `svc upgrade --rollback`; else add --allow-older.',
      })
    await put(prefix, { source, release })
    return { changed: true, ...compared, ...(await afterSwitch(prefix, context)) }
  })
  remember(prefix, key, context)
  await out.result(result, { look: 'upgrade' })
}

function comparedWithCurrent(prefix: Prefix, { version }: ReleaseManifest) {
  const before = prefix.copyAt('current')?.version ?? null
  return { version, before, isNewer: before === null || compare(version, before) > 0, folder: prefix.folder }
}

async function rollBack(prefix: Prefix, context: CommandContext): Promise<void> {
  const result = await prefix.alone(async () => {
    const [now, before] = [prefix.copyAt('current'), prefix.copyAt('previous')]
    // A kill within a switch may leave both links on one version.
    if (before === null || prefix.areSame())
      throw new CliError('no_version_before', `There is no version before ${now?.version ?? 'this one'} here.`, {
        remediation: 'Install one: svc upgrade FOLDER --allow-older',
      })
    await tryCopy(join(prefix.folder, 'previous'), before.version)
    prefix.switchBack()
    return { version: before.version, before: now?.version ?? null, ...(await afterSwitch(prefix, context)) }
  })
  await context.out.result({ changed: true, isNewer: false, folder: prefix.folder, ...result }, { look: 'upgrade' })
}

function releases(prefix: Prefix, { positionals, resolvePath }: CommandContext): ReleaseSource {
  const [given] = positionals['source'] ?? []
  const source = given ?? readIfThere(join(prefix.folder, keptNames.source))?.trim()
  if (source === undefined)
    throw usageError(
      'It is not known where releases lie.',
      'Name a folder or an address; with --remember it is taken the next time.',
    )
  return sourceOf(source, resolvePath)
}

/** The key that was named, or that of the operator, or that with which the copy that runs was built. */
async function trustedKey(prefix: Prefix, lib: string, context: CommandContext): Promise<string> {
  const named = context.values.local['key']
  if (typeof named === 'string') return String(await readFileOrInput(named, context))
  const key = readIfThere(join(prefix.folder, keptNames.key)) ?? readIfThere(join(lib, copyKeyFile))
  if (key !== null) return key
  throw new CliError('no_release_key', 'This svc was built without the key that releases are verified with.', {
    remediation: 'Name the file of the public key of whoever makes your releases: --key FILE',
  })
}

/** Fetches, verifies, unpacks and tries the release, and makes it current. Until then nothing has changed. */
async function put(
  prefix: Prefix,
  { source, release }: { source: ReleaseSource; release: ReleaseManifest },
): Promise<void> {
  const file = fileForHere(release)
  const draft = prefix.draft()
  const tarball = `${draft}.tar.gz`
  const unpacked = `${draft}-unpacked`
  try {
    await fetchVerified(source, file, tarball)
    // Whatever the umask is: its programs are tried before they are opened to all.
    mkdirSync(unpacked, { mode: 0o700 })
    const folder = await unpack(tarball, unpacked)
    await tryCopy(folder, release.version)
    rmSync(draft, { recursive: true })
    renameSync(folder, draft)
    prefix.switchTo(prefix.keep(draft, { kind: 'tarball', version: release.version, commit: release.commit }))
  } finally {
    for (const path of [draft, tarball, unpacked]) rmSync(path, { recursive: true, force: true })
  }
}

function fileForHere({ version, files }: ReleaseManifest): ReleasedFile {
  const here = `${process.platform}-${process.arch}`
  const file = files.find(({ kind, platform }) => kind === 'tarball' && platform === here)
  if (file !== undefined) return file
  throw new CliError('no_file_for_platform', `The release ${version} has no tarball for ${here}.`, {
    remediation: 'Build one for this platform (docs/install.md).',
  })
}

/** Keeps the source and the key for the next time, once they were good. */
function remember(prefix: Prefix, key: string, { positionals, resolvePath, values }: CommandContext): void {
  const [given] = positionals['source'] ?? []
  if (values.local['remember'] === true && given !== undefined)
    keep(join(prefix.folder, keptNames.source), /^https?:/i.test(given) ? given : resolvePath(given))
  if (values.local['key'] !== undefined) keep(join(prefix.folder, keptNames.key), key)
}

/** All may read it, and nobody else may write it: it decides what root installs. */
function keep(path: string, text: string): void {
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  writeFileSync(draft, text, { mode: 0o600, flush: true })
  chmodSync(draft, 0o644)
  renameSync(draft, path)
}
