import { z } from 'zod'

// The answer of S3 to who asks for uploads that were begun, as the client reads XML: one upload is no list.

const upload = z.object({ Key: z.string(), UploadId: z.string() })
const answer = z.object({
  ListMultipartUploadsResult: z.object({ Upload: z.union([upload, z.array(upload)]) }),
})

export function uploadsIn(listed: unknown): z.infer<typeof upload>[] {
  const read = answer.safeParse(listed)
  return read.success ? [read.data.ListMultipartUploadsResult.Upload].flat() : []
}
