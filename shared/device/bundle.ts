import { z } from 'zod'
import { bundleLimits, pathLimits } from '../lib/bundle-path.ts'

/** `GET <bundlesPath>/<hash>` with a device's token answers `bundleHead` as one line of JSON, then the contents of the files in its order. */
export const bundlesPath = '/api/device/skills'

/** The most bytes of the head of a bundle, which is far more than the longest list takes. */
export const bundleHeadBytes = 512 * 1024

export const bundleHead = z.object({
  files: z
    .array(
      z.object({
        path: z.string().max(pathLimits.bytes),
        sizeBytes: z.number().int().nonnegative().max(bundleLimits.totalBytes),
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
        executable: z.boolean(),
      }),
    )
    .max(bundleLimits.files),
})
