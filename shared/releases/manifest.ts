import { z } from 'zod'

/**
 * The manifest of a release: what was built, for which platforms, with hashes. It is one file of JSON, `release.json`, signed as a whole in a
 * file beside it; everything else of a release is believed by its hash in there.
 */
export const manifestNames = { manifest: 'release.json', signature: 'release.json.sig' } as const

export const platforms = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64'] as const
export type Platform = (typeof platforms)[number]

/** Larger manifests are refused before they are read, and so are larger files. */
export const manifestLimits = { manifestBytes: 64 * 1024, fileBytes: 1024 ** 3 } as const

const semver = /^\d{1,6}\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z][0-9A-Za-z.-]{0,63})?$/
/** A name of a file, which can lead to no other folder. */
const fileName = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$/

const releasedFile = z.object({
  name: z.string().regex(fileName),
  kind: z.enum(['tarball', 'npm', 'deb', 'formula', 'sbom']),
  /** null: for all. */
  platform: z.enum(platforms).nullable(),
  bytes: z.number().int().positive().max(manifestLimits.fileBytes),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
export type ReleasedFile = z.infer<typeof releasedFile>

// A later release may tell more: what is unknown is ignored, here as in all that crosses versions.
export const releaseManifest = z.object({
  product: z.literal('svc'),
  version: z.string().regex(semver),
  /** The commit that it was built from. */
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  /** The time of that commit, ISO 8601. */
  madeAt: z.iso.datetime(),
  files: z.array(releasedFile).min(1).max(100),
})
export type ReleaseManifest = z.infer<typeof releaseManifest>
