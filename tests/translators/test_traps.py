"""The 66 traps of batch-script dialects, by number: what each is about, and the tests that hold it.

The tests run where they stand; here it is seen that each trap has some.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Final

import pytest

from tests.translators import test_flux as flux
from tests.translators import test_htcondor as condor
from tests.translators import test_scripts_cobalt as cobalt
from tests.translators import test_scripts_lsf as lsf
from tests.translators import test_scripts_sge as sge
from tests.translators import test_scripts_traps as slurm_pbs

Case = Callable[..., None]


def test_08_a_directive_in_a_here_document() -> None:
    """Flux obeys it where it is the first one."""
    assert flux.flux("cat > x <<EOF\n#FLUX: -N 1 -n 1\nEOF\n") == ["--nodes=1", "--nslots=1"]


def test_61_ids_are_foreign() -> None:
    """No id of another system is ever written as if it were one of the target's."""
    said = {"slurm": "#SBATCH -d afterok:17\n", "pbspro": "#PBS -W depend=afterok:17.head\n",
            "torque": "#PBS -W depend=afterok:17.head\n"}
    for source, text in said.items():
        for target in ("slurm", "pbspro", "torque"):
            made = slurm_pbs.options(source, text, target)
            assert any("17" in line for line in made)
            assert all(("@JOBID:17" in line) == (source != target) for line in made if "17" in line)


def test_64_w_is_a_condition_or_a_list_of_nodes() -> None:
    assert lsf.lsf('#BSUB -w "done(1)"\n') == ['-w "done(1)"']
    assert slurm_pbs.options("slurm", "#SBATCH -w n1\n") == ["--nodelist=n1"]
    assert slurm_pbs.options("slurm", "#SBATCH -w n1\n", "pbspro")[0] == "-l select=1:host=n1"


#: Number -> what it is about, and its tests.
TRAPS: Final[dict[int, tuple[str, tuple[Case, ...]]]] = {
    1: ("where reading stops", (slurm_pbs.test_01_where_reading_stops, lsf.test_01_08_reading_never_stops,
                                sge.test_01_07_08_reading_never_stops)),
    2: ("blanks before the prefix", (slurm_pbs.test_02_leading_blanks, sge.test_02_03_blanks_and_comments)),
    3: ("commented-out directives", (slurm_pbs.test_03_commented_out, lsf.test_03_commented_out,
                                     sge.test_02_03_blanks_and_comments, flux.test_03_a_prefix_with_two_signs_is_live)),
    4: ("no blank after the prefix", (slurm_pbs.test_04_no_blank_after_the_prefix, sge.test_04_05_glued_to_the_prefix,
                                      cobalt.test_04_06_only_the_lines_below_the_first_one)),
    5: ("a shell comment that Grid Engine obeys", (sge.test_04_05_glued_to_the_prefix,)),
    6: ("Cobalt reads right below the first line", (cobalt.test_04_06_only_the_lines_below_the_first_one,)),
    7: ("a command before the directives", (slurm_pbs.test_07_a_command_before_the_directives,
                                            sge.test_01_07_08_reading_never_stops)),
    8: ("directives in here-documents", (sge.test_01_07_08_reading_never_stops, lsf.test_01_08_reading_never_stops,
                                         test_08_a_directive_in_a_here_document)),
    9: ("directives in text of generators", (slurm_pbs.test_09_text_is_no_directive,)),
    10: ("conflict markers", (slurm_pbs.test_10_conflict_markers,)),
    11: ("something before the first line", (slurm_pbs.test_11_no_shebang, sge.test_11_no_first_line)),
    12: ("#PBS in a script of Slurm", (slurm_pbs.test_12_pbs_lines_win_in_slurm,)),
    13: ("#SLURM", (slurm_pbs.test_13_slurm_as_prefix,)),
    14: ("comments after a directive", (slurm_pbs.test_14_trailing_comments, lsf.test_14_trailing_comments,
                                        cobalt.test_14_28_no_comments_no_quotes)),
    15: ("a hash within a value", (slurm_pbs.test_15_hash_within_a_word, sge.test_15_comment_inside_quotes)),
    16: ("a backslash keeps no blank", (slurm_pbs.test_16_backslash_keeps_no_blank,)),
    17: ("-J=foo", (slurm_pbs.test_17_equals_after_a_short_option,)),
    18: ("--tasks", (slurm_pbs.test_18_tasks_is_tasks_per_node,)),
    19: ("abbreviated options", (slurm_pbs.test_19_abbreviations, cobalt.test_19_20_abbreviations_and_glued_values)),
    20: ("glued values", (slurm_pbs.test_20_glued_values, lsf.test_20_glued_values,
                          cobalt.test_19_20_abbreviations_and_glued_values)),
    21: ("several resources in one -l", (slurm_pbs.test_21_several_resources_in_one_option,)),
    22: ("no value; the same option twice", (slurm_pbs.test_22_no_value_and_twice,
                                             cobalt.test_22_last_wins_and_variables_add_up)),
    23: ("two options on a line", (slurm_pbs.test_23_two_options_on_a_line,)),
    24: ("quotes and plus in select", (slurm_pbs.test_24_quotes_and_plus_in_select,)),
    25: ("-R unquoted, twice, compound", (lsf.test_25_several_requirements, lsf.test_25_compound_requirements)),
    26: ("name and array in one", (lsf.test_26_name_and_array,)),
    27: ("another dash", (lsf.test_27_another_dash,)),
    28: ("no quotes in Cobalt", (cobalt.test_14_28_no_comments_no_quotes,)),
    29: ("a comment that is part of the value", (condor.test_29_a_comment_is_part_of_the_value,)),
    30: ("DOS line breaks, byte order mark", (slurm_pbs.test_30_dos_and_byte_order_mark, lsf.test_30_dos_line_breaks,
                                              sge.test_30_dos_line_breaks, cobalt.test_30_dos_line_breaks)),
    31: ("a bare number as time", (slurm_pbs.test_31_32_33_times, lsf.test_31_32_times, sge.test_31_times,
                                   cobalt.test_31_32_times, flux.test_31_a_bare_time_is_minutes)),
    32: ("1:30", (slurm_pbs.test_31_32_33_times, lsf.test_31_32_times, sge.test_32_two_fields_are_no_time,
                  cobalt.test_31_32_times)),
    33: ("days", (slurm_pbs.test_31_32_33_times, slurm_pbs.test_58_33_array_forms)),
    34: ("no limit", (slurm_pbs.test_34_no_limit, flux.test_no_limit_is_kept_for_flux_only)),
    35: ("--mem=0", (slurm_pbs.test_35_all_the_memory,)),
    36: ("sizes that Slurm refuses", (slurm_pbs.test_36_sizes,)),
    37: ("memory of what", (slurm_pbs.test_37_memory_of_what, lsf.test_37_memory_of_a_host_a_task_and_the_job,
                            sge.test_37_memory_is_that_of_a_slot)),
    38: ("memory of LSF without a unit", (lsf.test_38_memory_without_a_unit,)),
    39: ("4G and 4g", (sge.test_39_sizes,)),
    40: ("memory in MB, disk in KB", (condor.test_40_memory_is_mebibytes_disk_kibibytes,)),
    41: ("GPUs of what", (slurm_pbs.test_41_gpus_of_what, lsf.test_41_gpus,
                          sge.test_41_gpus_are_counted_as_the_site_counts)),
    42: ("chunks are not nodes", (slurm_pbs.test_42_chunks_are_not_nodes,)),
    43: ("a host in place of a count", (slurm_pbs.test_43_a_host_in_place_of_a_count,)),
    44: ("uneven parts, a part of nothing", (slurm_pbs.test_44_uneven_parts,)),
    45: ("no node count", (slurm_pbs.test_45_no_node_count,)),
    46: ("ranges", (slurm_pbs.test_46_47_ranges_of_nodes, lsf.test_46_ranges_of_slots, sge.test_46_ranges_of_slots,
                    flux.test_46_a_range_of_nodes)),
    47: ("-N 2k", (slurm_pbs.test_46_47_ranges_of_nodes,)),
    48: ("signs of priorities", (slurm_pbs.test_48_signs_of_priority, flux.test_48_priorities_keep_their_sign)),
    49: ("mail", (slurm_pbs.test_49_mail, lsf.test_49_mail, sge.test_49_mail)),
    50: ("a directory as output", (slurm_pbs.test_50_directories, lsf.test_50_54_files, sge.test_50_52_files)),
    51: ("what is no pattern", (slurm_pbs.test_51_what_is_no_pattern,)),
    52: ("pseudo variables", (slurm_pbs.test_52_pseudo_variables, sge.test_50_52_files, cobalt.test_52_53_files)),
    53: ("joined streams", (slurm_pbs.test_53_joined_streams, lsf.test_53_one_file_for_both_streams,
                            sge.test_53_joined_streams, cobalt.test_52_53_files)),
    54: ("appending", (lsf.test_50_54_files, slurm_pbs.test_appending_is_said_by_open_mode)),
    55: ("commas in variables", (slurm_pbs.test_55_commas_in_variables, lsf.test_55_56_environment,
                                 sge.test_55_values_with_a_comma, cobalt.test_55_values_with_signs)),
    56: ("which variables a job finds", (slurm_pbs.test_56_57_defaults_that_differ, lsf.test_55_56_environment,
                                         sge.test_56_57_defaults_differ)),
    57: ("where a job starts", (slurm_pbs.test_56_57_defaults_that_differ, lsf.test_57_60_dependencies,
                                slurm_pbs.test_57_a_home_directory_is_told_unless_the_script_leaves_it,
                                sge.test_56_57_defaults_differ, slurm_pbs.test_57_a_script_goes_where_it_would_start)),
    58: ("arrays from 0", (slurm_pbs.test_58_33_array_forms, sge.test_58_arrays_begin_at_one,
                           slurm_pbs.test_58_the_index_is_the_one_that_was_asked_for)),
    59: ("the same letter, another meaning", (slurm_pbs.test_59_the_same_letter,)),
    60: ("forms of dependencies", (slurm_pbs.test_60_61_dependencies, lsf.test_57_60_dependencies,
                                   sge.test_60_61_dependencies, cobalt.test_60_dependencies,
                                   flux.test_60_dependencies_are_one_uri_each)),
    61: ("foreign ids", (slurm_pbs.test_60_61_dependencies, sge.test_60_61_dependencies, test_61_ids_are_foreign)),
    62: ("parts of a job do not inherit", (slurm_pbs.test_62_heterogeneous_jobs,)),
    63: ("expressions of constraints", (slurm_pbs.test_63_constraints,)),
    64: ("-w", (test_64_w_is_a_condition_or_a_list_of_nodes,)),
    65: ("singleton, bare ids", (slurm_pbs.test_65_singleton_and_bare_ids,)),
    66: ("templates", (slurm_pbs.test_66_templates, lsf.test_66_templates, sge.test_66_templates,
                       cobalt.test_66_templates)),
}


def test_all_of_them_are_there() -> None:
    assert list(TRAPS) == list(range(1, 67))


def test_every_trap_names_tests_that_run() -> None:
    """They run where they stand: each is a test function of its module, under the name that pytest finds it by."""
    for number, (title, cases) in TRAPS.items():
        assert cases, (number, title)
        for case in cases:
            assert case.__name__.startswith("test_") and getattr(sys.modules[case.__module__], case.__name__) is case


@pytest.mark.parametrize("module", [slurm_pbs, lsf, sge, cobalt, flux, condor], ids=lambda m: m.__name__)
def test_tests_named_after_a_trap_are_told_of_it(module: ModuleType) -> None:
    """``test_31_32_times`` stands at 31 and at 32."""
    for name, case in vars(module).items():
        numbers = re.match(r"test((?:_\d\d)+)_", name)
        for number in map(int, numbers[1].split("_")[1:] if numbers else ()):
            assert case in TRAPS[number][1], (name, number)
