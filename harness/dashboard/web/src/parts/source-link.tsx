// The name of an implementation's folder, with a link to the source code if the repository has a web address.
import type { ImplementationInfo, RunDocument } from "../documents";

export function SourceLink({ doc, info }: { doc: RunDocument; info: ImplementationInfo }) {
  const address = folderAddress(doc.source_base, doc.run.revision, info.folder);
  const folder = (
    <code>
      <bdi>{info.folder || "–"}</bdi>
    </code>
  );
  return address ? (
    <a href={address} rel="noreferrer">
      {folder}
    </a>
  ) : (
    folder
  );
}

/** Return the URL of a folder at a revision, or null if `base` or `folder` is missing or unsafe in a link. */
export function folderAddress(base: string | null, revision: string | null, folder: string): string | null {
  if (!base || !/^https?:\/\//.test(base) || !/^[\w.+#-]+(\/[\w.+# -]+)*$/.test(folder) || folder.includes(".."))
    return null;
  const at = revision && /^[0-9a-f]{7,64}$/.test(revision) ? revision : "HEAD";
  return `${base}/tree/${at}/${folder.split("/").map(encodeURIComponent).join("/")}`;
}
