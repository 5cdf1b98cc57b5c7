import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import type { FileEntry } from "../api/types";
import { bytes } from "../format";
import { buttonClass } from "../ui/button";
import { Empty } from "../ui/empty";
import { Answer } from "../ui/loading";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";

const join = (folder: string, name: string) => (folder === "." ? name : `${folder}/${name}`);
// A name as it is, from how a listing writes it.
const unescaped = (name: string) => name.replace(/\\\\|(?:\\x[0-9a-f]{2})+/g, (part) =>
  part === "\\\\" ? "\\" : new TextDecoder().decode(Uint8Array.from(part.slice(2).split("\\x"), (byte) => Number.parseInt(byte, 16))));
const parent = (folder: string) => (folder.includes("/") ? folder.slice(0, folder.lastIndexOf("/")) : ".");

// The files of a place that is held.
export function Files({ lease }: { lease: string }) {
  const [folder, setFolder] = useState(".");
  const query = useQuery({
    queryKey: ["files", lease, folder],
    queryFn: ({ signal }) => api.get("/api/environment-leases/{lease}/files", { path: { lease }, query: { path: unescaped(folder) }, signal }),
  });
  const url = (path: string) => `/api/environment-leases/${lease}/files?path=${encodeURIComponent(unescaped(path))}&limitBytes=16777216`;
  const archive = `/api/environment-leases/${lease}/archive?path=${encodeURIComponent(unescaped(folder))}`;
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center justify-between gap-2 text-sm">
        <p><code>{folder === "." ? "working folder" : folder}</code>{folder !== "." && <button type="button" className="link ml-3 underline" onClick={() => setFolder(parent(folder))}>Up</button>}</p>
        <a className={buttonClass()} href={archive} download={`${lease}.tar`}>Download as tar</a>
      </div>
      <Answer query={query}>
        {(listing) =>
          listing.entries.length === 0 ? (
            <Empty title="Empty">This folder has no files.</Empty>
          ) : (
            <Table label="Files" head={["Name", "Size", "Mode", "Changed"]}>
              {listing.entries.map((entry) => (
                <tr key={entry.name}>
                  <td className="font-mono text-[13px]"><Name entry={entry} href={url(join(folder, entry.name))} onOpen={() => setFolder(join(folder, entry.name))} /></td>
                  <td className="whitespace-nowrap">{entry.type === "file" ? bytes(entry.bytes) : entry.type.replaceAll("_", " ")}</td>
                  <td className="font-mono text-[13px]">{entry.mode}</td>
                  <td><Ago at={entry.mtime} /></td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
    </div>
  );
}

function Name({ entry, href, onOpen }: { entry: FileEntry; href: string; onOpen: () => void }) {
  if (entry.type === "directory") return <button type="button" className="underline" onClick={onOpen}>{entry.name}/</button>;
  if (entry.type === "file") return <a className="link" href={href} download={entry.name}>{entry.name}</a>;
  return <span>{entry.name}{entry.target ? ` → ${entry.target}` : ""}</span>;
}
